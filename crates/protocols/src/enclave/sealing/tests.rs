use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn vectors() -> Value {
    let text = include_str!("../../../../../tests/conformance/enclave/crypto-vectors.json");
    serde_json::from_str(text).unwrap()
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().unwrap();
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap())
        .collect()
}

fn secret(value: &Value) -> [u8; 32] {
    hex(value).try_into().unwrap()
}

fn session() -> EnclaveSessionId {
    EnclaveSessionId::parse("s_00000000-0000-4000-8000-000000000001").unwrap()
}

#[test]
fn the_recorded_handshake_and_envelopes_are_reproduced() {
    let vectors = vectors();
    let (client, server) =
        (secret(&vectors["clientPrivateHex"]), secret(&vectors["serverPrivateHex"]));
    let hello = ClientHello::new(&client).unwrap();
    assert_eq!(serde_json::to_value(&hello).unwrap(), vectors["clientHello"]);
    let key_id = vectors["keyId"].as_str().unwrap();
    let answer = ServerHello::answer_handshake(&hello, &server, &session(), key_id, None).unwrap();
    assert_eq!(serde_json::to_value(&answer).unwrap(), vectors["serverHello"]);
    let keys = DirectionKeys::agree(&server, &hello.client_key, &session()).unwrap();
    assert_eq!(keys, DirectionKeys::agree(&client, &answer.server_key, &session()).unwrap());
    assert_eq!(
        (keys.c2s.to_vec(), keys.s2c.to_vec()),
        (hex(&vectors["hkdf"]["c2sHex"]), hex(&vectors["hkdf"]["s2cHex"]))
    );
    let prefix = hex(&vectors["noncePrefixHex"]).try_into().unwrap();
    let sealer = StreamSealer::new(&keys.s2c, prefix, key_id, &session());
    let inner = vectors["innerPlaintextUtf8"].as_str().unwrap();
    for vector in vectors["vectors"].as_array().unwrap() {
        let counter = vector["counter"].as_str().unwrap().parse().unwrap();
        let envelope = sealer.sealed(counter, 2, inner.as_bytes());
        assert_eq!(serde_json::to_value(&envelope).unwrap(), vector["envelope"]);
    }
}

#[test]
fn a_hello_that_cannot_be_used_is_refused() {
    let vectors = vectors();
    let good: ClientHello = serde_json::from_value(vectors["clientHello"].clone()).unwrap();
    let answer = |hello: &ClientHello| {
        ServerHello::answer_handshake(hello, &[1; 32], &session(), "k_1", None)
    };
    assert!(answer(&good).is_ok());
    assert_eq!(
        answer(&ClientHello { curve: "P-384".into(), ..good.clone() }),
        Err(BadHello::Curve)
    );
    assert_eq!(
        answer(&ClientHello { supported_algorithms: vec![], ..good.clone() }),
        Err(BadHello::Algorithm)
    );
    for key in ["", "AAAA", "!", &base64(&[4; 65])] {
        assert_eq!(
            answer(&ClientHello { client_key: key.into(), ..good.clone() }),
            Err(BadHello::Key),
            "{key}"
        );
    }
}

#[test]
fn a_pinned_identity_is_recognised_and_nobody_else_is() {
    let client = ClientHello::new(&[2; 32]).unwrap();
    let hello = ServerHello::answer_handshake(&client, &[3; 32], &session(), "k_1", Some(&[4; 32]))
        .unwrap();
    let pinned = public_of(&[4; 32]).unwrap();
    assert_eq!(hello.identity_key.as_ref(), Some(&pinned));
    assert_eq!(hello.check_proof(&client.client_key, &session(), Some(&pinned)), Ok(()));
    let refused = Err(BadHello::Signature);
    assert_eq!(
        hello.check_proof(&client.client_key, &session(), Some(&public_of(&[5; 32]).unwrap())),
        refused
    );
    assert_eq!(
        hello.check_proof(&public_of(&[6; 32]).unwrap(), &session(), Some(&pinned)),
        refused
    );
    let other = ServerHello { server_key: public_of(&[7; 32]).unwrap(), ..hello.clone() };
    assert_eq!(other.check_proof(&client.client_key, &session(), Some(&pinned)), refused);
    let unsigned = ServerHello { signature: None, ..hello };
    assert_eq!(unsigned.check_proof(&client.client_key, &session(), Some(&pinned)), refused);
}

fn event(seq: u64, text: &str) -> Vec<u8> {
    json!({"sessionId": session().as_str(), "seq": seq, "text": text}).to_string().into_bytes()
}

fn sealer(prefix: u8) -> StreamSealer {
    StreamSealer::new(&[9; 32], [prefix; 8], "k_1", &session())
}

fn opener() -> StreamOpener {
    StreamOpener::streams(&[9; 32], "k_1", &session())
}

#[test]
fn replayed_relabelled_skipped_and_foreign_envelopes_are_rejected() {
    let (mut sealer, mut opener) = (sealer(1), opener());
    let sealed: Vec<_> = (1..=4).map(|seq| sealer.seal(seq, &event(seq, "x")).unwrap()).collect();
    assert_eq!(opener.open(&sealed[0]).unwrap(), event(1, "x"));
    assert_eq!(opener.open(&sealed[0]), Err(UnsealError::Replayed));
    assert_eq!(opener.open(&sealed[2]), Err(UnsealError::Replayed), "one is missing");
    let relabelled = SealedEnvelope { seq: 9, ..sealed[1].clone() };
    assert_eq!(opener.open(&relabelled), Err(UnsealError::Relabelled));
    let elsewhere = SealedEnvelope { session_id: "s_2".into(), ..sealed[1].clone() };
    assert_eq!(opener.open(&elsewhere), Err(UnsealError::Stranger));
    let mut other_keys = sealed[1].clone();
    other_keys.payload.kid = "k_2".into();
    assert_eq!(opener.open(&other_keys), Err(UnsealError::Stranger));
    assert_eq!(opener.open(&sealed[1]).unwrap(), event(2, "x"), "none of that used it up");
    opener.begin_stream();
    assert_eq!(opener.open(&sealed[0]), Err(UnsealError::Replayed), "an old stream");
    assert_eq!(opener.open(&sealed[2]), Err(UnsealError::Replayed), "the middle of an old stream");
}

#[test]
fn messages_come_in_any_order_each_once() {
    let mut sealer = sealer(1);
    let mut opener = StreamOpener::messages(&[9; 32], "k_1", &session());
    let sealed: Vec<_> =
        (1..=2).map(|seq| sealer.seal(seq, br#"{"callId":"c_1"}"#).unwrap()).collect();
    assert!(opener.open(&sealed[1]).is_ok() && opener.open(&sealed[0]).is_ok());
    assert_eq!(opener.open(&sealed[1]), Err(UnsealError::Replayed));
}

#[test]
fn size_is_no_obstacle() {
    let inner = event(1, &"ä".repeat(300_000));
    assert_eq!(opener().open(&sealer(1).seal(1, &inner).unwrap()).unwrap(), inner);
}

#[test]
fn a_tag_may_come_apart() {
    let mut envelope = sealer(1).seal(1, &event(1, "x")).unwrap();
    let mut whole = BASE64_STANDARD.decode(&envelope.payload.ciphertext).unwrap();
    let tag = whole.split_off(whole.len() - 16);
    envelope.payload.ciphertext = base64(&whole);
    envelope.payload.tag = Some(base64(&tag));
    assert_eq!(opener().open(&envelope).unwrap(), event(1, "x"));
}

proptest! {
    #[test]
    fn what_is_sealed_opens_and_what_was_touched_does_not(text in ".{0,300}", flip in any::<u16>(), times in 1..20_usize) {
        let text = text.repeat(times);
        let inner = event(5, &text);
        let envelope = sealer(1).seal(5, &inner).unwrap();
        prop_assert_eq!(opener().open(&envelope).unwrap(), inner);
        let mut touched = envelope.clone();
        let mut raw = BASE64_STANDARD.decode(&touched.payload.ciphertext).unwrap();
        let at = usize::from(flip) % raw.len();
        raw[at] ^= 1;
        touched.payload.ciphertext = base64(&raw);
        prop_assert_eq!(opener().open(&touched), Err(UnsealError::Broken));
    }

    #[test]
    fn no_nonce_comes_twice_within_a_stream_or_across_restarts(prefixes in prop::collection::hash_set(any::<[u8; 8]>(), 1..20), n in 1..50_u64) {
        let mut seen = std::collections::BTreeSet::new();
        for prefix in prefixes {
            // After a restart, there is a new sealer with new randomness.
            let mut sealer = StreamSealer::new(&[9; 32], prefix, "k_1", &session());
            for seq in 0..n {
                let is_new = seen.insert(sealer.seal(seq, b"{}").unwrap().payload.nonce);
                prop_assert!(is_new);
            }
        }
    }
}

//! For any sequence of appends, the journal equals a list of lists.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// One append: its execution, the number of entries, the offset from the correct seq, and whether to wait for it.
type Step = (u8, u8, i8, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let off = prop_oneof![8 => Just(0_i8), 1 => Just(1), 1 => Just(-1)];
    prop::collection::vec((0..4_u8, 1..4_u8, off, any::<bool>()), 1..60)
}

async fn compare(steps: Vec<Step>) {
    let store = SqliteStore::temporary().unwrap();
    let mut model: BTreeMap<u128, Vec<Entry>> = BTreeMap::new();
    let mut unheard = Vec::new();
    for (who, n_entries, off, wait) in steps {
        let journal = model.entry(who.into()).or_default();
        let expected = (journal.len() as u64).saturating_add_signed(off.into());
        let entries: Vec<_> =
            (1..=u64::from(n_entries)).map(|n| line(expected + n, &n.to_string())).collect();
        let fits = expected == journal.len() as u64;
        if fits {
            journal.extend(entries.clone());
        }
        let written = store.append(append(who.into(), entries, running()));
        unheard.push((fits, written));
        if wait {
            for (fits, written) in unheard.drain(..) {
                let verdict = written.await;
                assert!(verdict.is_ok() == fits, "{verdict:?} {fits}");
            }
        }
    }
    for (fits, written) in unheard {
        assert_eq!(written.await.is_ok(), fits);
    }
    for (who, journal) in model {
        assert_eq!(all(&store, who).await, journal);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn random_appends_agree_with_a_list_of_lists(steps in steps()) {
        tokio::runtime::Runtime::new().unwrap().block_on(compare(steps));
    }
}

//! The table of docs/operating.md, and how command lines combine with a record.

use super::*;
use SettingEffect::{Loosens, Same, Tightens};

fn value(name: SettingName, text: &str) -> SettingValue {
    name.parse_value(text).unwrap()
}

#[test]
fn each_setting_says_which_change_loosens_it() {
    use SettingName as S;
    let table = [
        (S::Answers, "person", "person", Same),
        (S::Answers, "person", "client", Loosens),
        (S::Answers, "client", "model", Loosens),
        (S::Answers, "model", "person", Tightens),
        (S::AllowedHosts, "a,b", "a", Tightens),
        (S::AllowedHosts, "a", "a,b", Loosens),
        (S::AllowedHosts, "a", "b", Loosens),
        (S::AllowedHosts, "none", "a", Loosens),
        (S::TrustedProxies, "none", "192.0.2.1", Loosens),
        (S::TrustedProxies, "192.0.2.1,10.0.0.0/8", "10.0.0.0/8", Tightens),
        (S::AllowedOrigins, "https://a", "none", Tightens),
        (S::AllowedOrigins, "none", "https://a", Loosens),
        (S::OperatorMode, "off", "on", Tightens),
        (S::OperatorMode, "on", "off", Loosens),
        (S::Config, "/a", "/a", Same),
        (S::Config, "/a", "/b", Loosens),
        (S::Config, "usual", "/b", Loosens),
        (S::Config, "/a", "usual", Loosens),
        (S::UserConfig, "/a", "/b", Loosens),
        (S::ProjectFiles, "/a", "/a,/b", Tightens),
        (S::ProjectFiles, "/a,/b", "/a", Loosens),
        (S::VaultKey, "/a", "/b", Loosens),
        (S::Listen, "127.0.0.1:1", "127.0.0.1:2", Tightens),
        (S::Listen, "127.0.0.1:1", "[::1]:1", Tightens),
        (S::Listen, "127.0.0.1:1", "0.0.0.0:1", Loosens),
        (S::Listen, "192.168.1.5:1", "192.168.1.5:2", Tightens),
        (S::Listen, "192.168.1.5:1", "192.168.1.6:1", Loosens),
        (S::Listen, "0.0.0.0:1", "192.168.1.6:1", Tightens),
        (S::Listen, "0.0.0.0:1", "[::]:1", Loosens),
        (S::Listen, "192.168.1.5:1", "127.0.0.1:1", Tightens),
        (S::PublicUrl, "none", "https://a", Loosens),
        (S::PublicUrl, "https://a", "https://b", Loosens),
        (S::Supervised, "off", "on", Tightens),
        (S::Supervised, "on", "off", Tightens),
    ];
    for (name, old, new, expected) in table {
        let seen = effect(name, &value(name, old), &value(name, new));
        assert_eq!((name, old, new, seen), (name, old, new, expected));
    }
}

#[test]
fn a_value_is_checked_and_written_as_it_was_read() {
    for (name, text) in [
        (SettingName::Answers, "client"),
        (SettingName::AllowedHosts, "a.example,b.example"),
        (SettingName::AllowedHosts, "none"),
        (SettingName::Listen, "127.0.0.1:4788"),
        (SettingName::Config, "usual"),
    ] {
        assert_eq!(value(name, text).to_string(), text);
    }
    for (name, text) in [
        (SettingName::Answers, "agent"),
        (SettingName::OperatorMode, "yes"),
        (SettingName::Config, "airlock.toml"),
        (SettingName::VaultKey, "key"),
        (SettingName::Listen, "here"),
        (SettingName::PublicUrl, "ftp://a"),
    ] {
        assert!(name.parse_value(text).is_err(), "{name} {text}");
    }
    let many = vec!["a"; LIST_MAX + 1].join(",");
    assert!(SettingName::AllowedHosts.parse_value(&many).is_err());
    for name in SettingName::ALL {
        assert_eq!(name.name().parse(), Ok(name));
    }
    assert!("answer".parse::<SettingName>().unwrap_err().contains("answers, allowed-hosts"));
}

fn settings(pairs: &[(SettingName, &str)]) -> BTreeMap<SettingName, SettingValue> {
    pairs.iter().map(|(name, text)| (*name, value(*name, text))).collect()
}

#[test]
fn a_flag_tightens_or_repeats_and_never_loosens() {
    use SettingName::{AllowedHosts, Answers};
    let defaults = settings(&[(Answers, "person"), (AllowedHosts, "none")]);
    let flags = |named: &[(SettingName, &str)], replaces| StartFlags {
        named: settings(named),
        defaults: defaults.clone(),
        unused: BTreeSet::new(),
        replaces,
    };
    // First start: the command line becomes the record.
    let first = resolve_setting(&BTreeMap::new(), &flags(&[(Answers, "model")], false)).unwrap();
    assert_eq!(first.values, settings(&[(Answers, "model"), (AllowedHosts, "none")]));
    assert_eq!(first.changed, [Answers, AllowedHosts]);
    let recorded = settings(&[(Answers, "client"), (AllowedHosts, "a")]);
    // Without a flag the record applies.
    let same = resolve_setting(&recorded, &flags(&[], false)).unwrap();
    assert_eq!((same.values, same.changed), (recorded.clone(), vec![]));
    let tighter = resolve_setting(&recorded, &flags(&[(Answers, "person")], false)).unwrap();
    assert_eq!(tighter.changed, [Answers]);
    let refused = resolve_setting(&recorded, &flags(&[(Answers, "model")], false)).unwrap_err();
    assert_eq!((refused.name, refused.flag), (Answers, "model".into()));
    // The whole command line is the new record: a setting that it does not name gets its default.
    let replaced = resolve_setting(&recorded, &flags(&[(Answers, "model")], true)).unwrap();
    assert_eq!(replaced.values, settings(&[(Answers, "model"), (AllowedHosts, "none")]));
}

#[test]
fn operator_mode_has_no_flag_and_no_command_line_ends_it() {
    use SettingName::OperatorMode;
    let recorded = settings(&[(OperatorMode, "on")]);
    let defaults = settings(&[(OperatorMode, "off")]);
    let flags = StartFlags { defaults, replaces: true, ..StartFlags::default() };
    let settled = resolve_setting(&recorded, &flags).unwrap();
    assert_eq!((settled.values, settled.changed), (recorded, vec![]));
}

#[test]
fn another_file_loosens_only_where_the_recorded_one_is_used() {
    use SettingName::VaultKey;
    let recorded = settings(&[(VaultKey, "/data/vault.key")]);
    let mut flags = StartFlags { named: settings(&[(VaultKey, "/b")]), ..StartFlags::default() };
    assert!(resolve_setting(&recorded, &flags).is_err());
    flags.unused.insert(VaultKey);
    assert_eq!(resolve_setting(&recorded, &flags).unwrap().changed, [VaultKey]);
}

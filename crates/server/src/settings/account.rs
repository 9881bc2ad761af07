//! Whether the server's account is also the account of its clients. Under one account nothing protects the server:
//! its store, its process and the person's browser profile all belong to the agent.

use std::os::unix::fs::MetadataExt as _;

/// The known facts about the account of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountFacts {
    /// The effective user id.
    pub uid: u32,
    /// The user who logged in to the session of this process; none for a service.
    pub login_uid: Option<u32>,
    /// Name and shell of the account's entry in /etc/passwd.
    pub entry: Option<(String, String)>,
}

/// Shells that permit no login.
const NO_LOGIN: [&str; 2] = ["nologin", "false"];

/// The audit subsystem's value for a process outside of any login session.
const UNSET: u32 = u32::MAX;

/// Reads the facts about the account of this process.
pub fn server_account() -> AccountFacts {
    let uid = std::fs::metadata("/proc/self").map_or(0, |data| data.uid());
    let login_uid = std::fs::read_to_string("/proc/self/loginuid").ok();
    let login_uid = login_uid.and_then(|text| text.trim().parse().ok()).filter(|uid| *uid != UNSET);
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    AccountFacts { uid, login_uid, entry: entry(&passwd, uid) }
}

fn entry(passwd: &str, uid: u32) -> Option<(String, String)> {
    passwd.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        let [name, _, id, _, _, _, shell] = fields.as_slice() else { return None };
        (id.parse() == Ok(uid)).then(|| ((*name).to_owned(), (*shell).to_owned()))
    })
}

/// Why clients may run under this account too; none for an account that only a service uses.
pub fn shared_account(facts: &AccountFacts) -> Option<String> {
    let AccountFacts { uid, login_uid, entry } = facts;
    let Some((name, shell)) = entry else {
        return Some(format!("the user id {uid} has no entry in /etc/passwd"));
    };
    if *login_uid == Some(*uid) {
        return Some(format!("{name} is logged in"));
    }
    let program = shell.rsplit('/').next().unwrap_or_default();
    match NO_LOGIN.contains(&program) {
        true => None,
        false => Some(format!("{name} can log in with {shell}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_the_servers_own_where_no_one_can_log_in_with_it() {
        let passwd = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:1000::/home/ann:/bin/zsh\n\
                      airlock:x:998:998::/var/lib/airlock:/usr/sbin/nologin\n";
        let facts = |uid, login_uid| AccountFacts { uid, login_uid, entry: entry(passwd, uid) };
        assert_eq!(shared_account(&facts(998, None)), None);
        // `sudo -u airlock` in a person's terminal.
        assert_eq!(shared_account(&facts(998, Some(1000))), None);
        for (uid, login_uid, why) in [
            (0, None, "root can log in with /bin/bash"),
            (1000, None, "ann can log in with /bin/zsh"),
            (1000, Some(1000), "ann is logged in"),
            (998, Some(998), "airlock is logged in"),
            (1234, None, "the user id 1234 has no entry in /etc/passwd"),
        ] {
            assert_eq!(shared_account(&facts(uid, login_uid)).as_deref(), Some(why));
        }
    }
}

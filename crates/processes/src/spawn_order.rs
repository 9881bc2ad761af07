//! Messages between the server and a subreaper. Both are this same binary, so the format is simple; the
//! system limits the length of the program's strings.

use crate::cage::{
    CageLimits, LimitExcess, NetworkAccess, PathAccess, PathRule, ProcessCage, WallError,
};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Far more than the system accepts as arguments and environment; a longer order is invalid.
const ORDER_BYTES_MAX: usize = 64 << 20;

/// The program that a subreaper starts. Its descriptors are sent separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpawnOrder {
    pub(crate) has_terminal: bool,
    pub(crate) argv: Vec<OsString>,
    pub(crate) arg0: Option<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cage: Option<ProcessCage>,
}

impl SpawnOrder {
    /// The total length, then every string with its length.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 4];
        bytes.push(u8::from(self.has_terminal));
        put_list(&mut bytes, self.argv.iter().map(OsString::as_os_str));
        put_list(&mut bytes, self.arg0.iter().map(OsString::as_os_str));
        put_text(&mut bytes, self.cwd.as_os_str());
        put_list(&mut bytes, self.env.iter().flat_map(|(name, value)| [&**name, &**value]));
        put_cage(&mut bytes, self.cage.as_ref());
        let n_bytes = length(bytes.len() - 4);
        bytes[..4].copy_from_slice(&n_bytes);
        bytes
    }

    /// Waits for one order and reads it.
    pub(crate) fn read(mut from: impl Read) -> io::Result<Self> {
        let mut head = [0; 4];
        from.read_exact(&mut head)?;
        let n_bytes = u32::from_le_bytes(head) as usize;
        if n_bytes > ORDER_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; n_bytes];
        from.read_exact(&mut body)?;
        parse(&body).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn parse(mut bytes: &[u8]) -> Option<SpawnOrder> {
    let (has_terminal, rest) = bytes.split_first()?;
    bytes = rest;
    let argv = take_list(&mut bytes)?;
    let arg0 = take_list(&mut bytes)?.pop();
    let cwd = PathBuf::from(take_text(&mut bytes)?);
    let mut texts = take_list(&mut bytes)?.into_iter();
    let mut env = vec![];
    while let Some(name) = texts.next() {
        env.push((name, texts.next()?));
    }
    let cage = take_cage(&mut bytes)?;
    Some(SpawnOrder { has_terminal: *has_terminal == 1, argv, arg0, cwd, env, cage })
}

const ACCESSES: [PathAccess; 3] = [PathAccess::Read, PathAccess::Write, PathAccess::Deny];
const NETWORKS: [NetworkAccess; 3] =
    [NetworkAccess::All, NetworkAccess::Loopback, NetworkAccess::None];

/// A byte for the presence of a cage; then the network, three limits, and each path with its access.
fn put_cage(bytes: &mut Vec<u8>, cage: Option<&ProcessCage>) {
    let Some(ProcessCage { rules, network, limits }) = cage else { return bytes.push(0) };
    bytes.extend([1, *network as u8]);
    for limit in [limits.memory_bytes, limits.cpu_ms, limits.processes] {
        bytes.extend(limit.unwrap_or(u64::MAX).to_le_bytes());
    }
    bytes.extend(length(rules.len()));
    for rule in rules {
        bytes.push(rule.access as u8);
        put_text(bytes, rule.path.as_os_str());
    }
}

fn take_cage(bytes: &mut &[u8]) -> Option<Option<ProcessCage>> {
    if take_byte(bytes)? == 0 {
        return Some(None);
    }
    let network = *NETWORKS.get(usize::from(take_byte(bytes)?))?;
    let mut limit = || -> Option<Option<u64>> {
        let (number, rest) = bytes.split_first_chunk::<8>()?;
        *bytes = rest;
        Some(Some(u64::from_le_bytes(*number)).filter(|number| *number != u64::MAX))
    };
    let limits = CageLimits { memory_bytes: limit()?, cpu_ms: limit()?, processes: limit()? };
    let n_rules = take_length(bytes)?;
    let rule = |_| {
        let access = *ACCESSES.get(usize::from(take_byte(bytes)?))?;
        Some(PathRule { access, path: take_text(bytes)?.into() })
    };
    let rules = (0..n_rules).map(rule).collect::<Option<_>>()?;
    Some(Some(ProcessCage { rules, network, limits }))
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(*byte)
}

fn put_list<'a>(bytes: &mut Vec<u8>, texts: impl Iterator<Item = &'a OsStr>) {
    let at = bytes.len();
    bytes.extend([0; 4]);
    let mut n_texts = 0;
    for text in texts {
        put_text(bytes, text);
        n_texts += 1;
    }
    bytes[at..at + 4].copy_from_slice(&length(n_texts));
}

fn put_text(bytes: &mut Vec<u8>, text: &OsStr) {
    bytes.extend(length(text.len()));
    bytes.extend(text.as_bytes());
}

fn length(n: usize) -> [u8; 4] {
    // The reader refuses longer ones.
    u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes()
}

fn take_list(bytes: &mut &[u8]) -> Option<Vec<OsString>> {
    let n_texts = take_length(bytes)?;
    (0..n_texts).map(|_| take_text(bytes)).collect()
}

fn take_text(bytes: &mut &[u8]) -> Option<OsString> {
    let n_bytes = take_length(bytes)?;
    let (text, rest) = bytes.split_at_checked(n_bytes)?;
    *bytes = rest;
    Some(OsString::from_vec(text.to_vec()))
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*length) as usize)
}

/// The signals that can be sent to a program and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FamilySignal {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// A request to terminate.
    Terminate,
    /// The terminal went away.
    HangUp,
    /// Immediate termination.
    Kill,
    /// Continue a stopped process.
    Continue,
    /// Stop the process.
    Stop,
    /// For the program's own use.
    User1,
    /// For the program's own use.
    User2,
    /// The size of the terminal changed.
    WindowChange,
}

impl FamilySignal {
    const ALL: [Self; 10] = [
        Self::Interrupt,
        Self::Quit,
        Self::Terminate,
        Self::HangUp,
        Self::Kill,
        Self::Continue,
        Self::Stop,
        Self::User1,
        Self::User2,
        Self::WindowChange,
    ];

    /// The system's number of the signal.
    pub const fn number(self) -> i32 {
        match self {
            Self::Interrupt => libc::SIGINT,
            Self::Quit => libc::SIGQUIT,
            Self::Terminate => libc::SIGTERM,
            Self::HangUp => libc::SIGHUP,
            Self::Kill => libc::SIGKILL,
            Self::Continue => libc::SIGCONT,
            Self::Stop => libc::SIGSTOP,
            Self::User1 => libc::SIGUSR1,
            Self::User2 => libc::SIGUSR2,
            Self::WindowChange => libc::SIGWINCH,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|signal| signal.number() == i32::from(number))
    }
}

/// The server's request to a subreaper that has started its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubreaperRequest {
    /// Signal the program and its group, if it still runs.
    Signal(FamilySignal),
    /// Kill everything.
    KillAll,
}

impl SubreaperRequest {
    /// One byte: zero, or the number of a signal.
    pub(crate) fn to_byte(self) -> u8 {
        match self {
            Self::Signal(signal) => signal.number().to_le_bytes()[0],
            Self::KillAll => 0,
        }
    }

    /// Decodes a request.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        if byte == 0 {
            Some(Self::KillAll)
        } else {
            FamilySignal::from_number(byte).map(Self::Signal)
        }
    }
}

/// What a subreaper reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubreaperReport {
    /// The program was started.
    Started { pid: i32 },
    /// It could not be started.
    Failed { errno: i32 },
    /// It was not started, because this layer of the cage could not be set up.
    Uncaged { wall: WallError },
    /// It and all its descendants were killed, because they exceeded this limit.
    Exceeded { excess: LimitExcess },
    /// It ended with this code, 128 + n for signal n. Descendants may still run.
    Exited { code: i32 },
    /// No process of the family is left.
    Empty,
}

/// The length of a report: a tag and a number.
pub(crate) const REPORT_BYTES: usize = 5;

impl SubreaperReport {
    pub(crate) fn to_bytes(self) -> [u8; REPORT_BYTES] {
        let (tag, number) = match self {
            Self::Started { pid } => (b'S', pid),
            Self::Failed { errno } => (b'F', errno),
            Self::Uncaged { wall } => (b'U', wall as i32),
            Self::Exceeded { excess } => (b'O', excess as i32),
            Self::Exited { code } => (b'X', code),
            Self::Empty => (b'E', 0),
        };
        let [a, b, c, d] = number.to_le_bytes();
        [tag, a, b, c, d]
    }

    pub(crate) fn from_bytes([tag, number @ ..]: [u8; REPORT_BYTES]) -> Option<Self> {
        let number = i32::from_le_bytes(number);
        match tag {
            b'S' => Some(Self::Started { pid: number }),
            b'F' => Some(Self::Failed { errno: number }),
            b'U' => WallError::ALL
                .into_iter()
                .find(|wall| *wall as i32 == number)
                .map(|wall| Self::Uncaged { wall }),
            b'O' => LimitExcess::ALL
                .into_iter()
                .find(|excess| *excess as i32 == number)
                .map(|excess| Self::Exceeded { excess }),
            b'X' => Some(Self::Exited { code: number }),
            b'E' => Some(Self::Empty),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = OsString> {
        prop::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
    }

    fn order() -> impl Strategy<Value = SpawnOrder> {
        let texts = || prop::collection::vec(text(), 0..5);
        let env = prop::collection::vec((text(), text()), 0..5);
        let rule = (prop::sample::select(&ACCESSES[..]), text())
            .prop_map(|(access, path)| PathRule { path: path.into(), access });
        let limits = (prop::option::of(0..9_u64), prop::option::of(0..9_u64)).prop_map(
            |(memory_bytes, cpu_ms)| CageLimits { memory_bytes, cpu_ms, processes: None },
        );
        let rules = prop::collection::vec(rule, 0..4);
        let cage = (rules, prop::sample::select(&NETWORKS[..]), limits)
            .prop_map(|(rules, network, limits)| ProcessCage { rules, network, limits });
        let program = (texts(), prop::option::of(text()), text(), env);
        (any::<bool>(), program, prop::option::of(cage)).prop_map(
            |(has_terminal, (argv, arg0, cwd, env), cage)| SpawnOrder {
                has_terminal,
                argv,
                arg0,
                cwd: cwd.into(),
                env,
                cage,
            },
        )
    }

    proptest! {
        #[test]
        fn an_order_reads_back_as_it_was_given(order in order()) {
            prop_assert_eq!(SpawnOrder::read(order.to_bytes().as_slice()).unwrap(), order);
        }

        #[test]
        fn nonsense_is_no_order_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn wishes_and_reports_read_back_as_they_were_said() {
        let signals = FamilySignal::ALL.map(SubreaperRequest::Signal);
        for wish in signals.into_iter().chain([SubreaperRequest::KillAll]) {
            assert_eq!(SubreaperRequest::from_byte(wish.to_byte()), Some(wish));
        }
        let reports = [
            SubreaperReport::Started { pid: 77 },
            SubreaperReport::Failed { errno: 2 },
            SubreaperReport::Exited { code: 143 },
            SubreaperReport::Uncaged { wall: WallError::Landlock },
            SubreaperReport::Exceeded { excess: LimitExcess::Cpu },
            SubreaperReport::Empty,
        ];
        for report in reports {
            assert_eq!(SubreaperReport::from_bytes(report.to_bytes()), Some(report));
        }
        assert_eq!(SubreaperRequest::from_byte(200), None);
        assert_eq!(SubreaperReport::from_bytes([0; REPORT_BYTES]), None);
    }
}

//! The control socket between the server and a zygote: small packets, some with a descriptor.

use crate::jail::{JailLayer, JailTier};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use tokio::io::unix::AsyncFd;

/// Identifies one runner between a zygote and its keeper. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ForkToken(pub(crate) u64);

/// Server to zygote: fork a runner. The descriptor that comes with it is the runner's end of its link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ForkOrder {
    pub(crate) token: ForkToken,
    pub(crate) memory_bytes: u64,
    /// Whether the runner will wait for its lease, and so has time to warm up.
    pub(crate) will_wait: bool,
}

/// Zygote to server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ZygoteReport {
    /// The jail is shut and the zygote accepts requests.
    Ready(JailTier),
    /// A required layer could not be raised.
    Missing { layer: JailLayer, errno: i32 },
    /// A runner was forked; its pidfd is attached.
    Born(ForkToken),
    /// The kernel refused to clone.
    NotBorn { token: ForkToken, errno: i32 },
    /// A runner has ended and is reaped.
    Ended { token: ForkToken, end: ProcessEnd },
}

/// How a process ended, as the kernel reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
}

/// The layout of every packet: its kind, a number, a longer number, a token.
const PACKET_BYTES: usize = 24;
type ControlPacket = [u8; PACKET_BYTES];

const ORDER: u32 = 1;
const READY: u32 = 2;
const MISSING: u32 = 3;
const BORN: u32 = 4;
const NOT_BORN: u32 = 5;
const EXITED: u32 = 6;
const SIGNALLED: u32 = 7;

fn packet(kind: u32, number: i32, value: u64, token: u64) -> ControlPacket {
    let mut packet = [0; PACKET_BYTES];
    packet[..4].copy_from_slice(&kind.to_ne_bytes());
    packet[4..8].copy_from_slice(&number.to_ne_bytes());
    packet[8..16].copy_from_slice(&value.to_ne_bytes());
    packet[16..].copy_from_slice(&token.to_ne_bytes());
    packet
}

fn fields(packet: &ControlPacket) -> (u32, i32, u64, ForkToken) {
    let long = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| packet[at + i]));
    let kind = u32::from_ne_bytes(std::array::from_fn(|i| packet[i]));
    let number = i32::from_ne_bytes(std::array::from_fn(|i| packet[4 + i]));
    (kind, number, long(8), ForkToken(long(16)))
}

impl ForkOrder {
    fn encode(self) -> ControlPacket {
        packet(ORDER, i32::from(self.will_wait), self.memory_bytes, self.token.0)
    }

    fn decode(bytes: &ControlPacket) -> Option<Self> {
        let (kind, will_wait, memory_bytes, token) = fields(bytes);
        (kind == ORDER).then_some(Self { token, memory_bytes, will_wait: will_wait != 0 })
    }
}

impl ZygoteReport {
    fn encode(self) -> ControlPacket {
        match self {
            Self::Ready(tier) => packet(READY, 0, tier.to_bits(), 0),
            Self::Missing { layer, errno } => packet(MISSING, errno, layer as u64, 0),
            Self::Born(token) => packet(BORN, 0, 0, token.0),
            Self::NotBorn { token, errno } => packet(NOT_BORN, errno, 0, token.0),
            Self::Ended { token, end: ProcessEnd::Exited(code) } => {
                packet(EXITED, code, 0, token.0)
            }
            Self::Ended { token, end: ProcessEnd::Signalled(signal) } => {
                packet(SIGNALLED, signal, 0, token.0)
            }
        }
    }

    fn decode(bytes: &ControlPacket) -> Option<Self> {
        let (kind, number, value, token) = fields(bytes);
        Some(match kind {
            READY => Self::Ready(JailTier::from_bits(value)),
            MISSING => {
                let layer = JailLayer::ALL.into_iter().find(|layer| *layer as u64 == value)?;
                Self::Missing { layer, errno: number }
            }
            BORN => Self::Born(token),
            NOT_BORN => Self::NotBorn { token, errno: number },
            EXITED => Self::Ended { token, end: ProcessEnd::Exited(number) },
            SIGNALLED => Self::Ended { token, end: ProcessEnd::Signalled(number) },
            _ => return None,
        })
    }
}

/// One end of a control socket.
#[derive(Debug)]
pub(crate) struct ControlSocket(OwnedFd);

impl ControlSocket {
    /// Creates both ends with close-on-exec set.
    pub(crate) fn pair() -> io::Result<(Self, Self)> {
        let mut ends: [RawFd; 2] = [-1; 2];
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
        // SAFETY: the kernel writes two descriptors into `ends`, which has space for two.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: both descriptors were just created and have no other owner.
        Ok(unsafe { (Self(OwnedFd::from_raw_fd(ends[0])), Self(OwnedFd::from_raw_fd(ends[1]))) })
    }

    pub(super) const fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    pub(crate) fn into_descriptor(self) -> OwnedFd {
        self.0
    }

    /// The server's side: registers the socket with the runtime.
    pub(crate) fn watched(self) -> io::Result<AsyncFd<Self>> {
        super::link::listening(self)
    }

    /// The server's side: never waits.
    pub(crate) fn order(&self, order: ForkOrder, link: BorrowedFd<'_>) -> io::Result<()> {
        self.send(&order.encode(), Some(link), libc::MSG_DONTWAIT)
    }

    /// The server's side: never waits. `None` when the zygote has ended.
    pub(crate) fn next_report(&self) -> io::Result<Option<(ZygoteReport, Option<OwnedFd>)>> {
        self.receive()?.map_or(Ok(None), |(packet, passed)| {
            let report = ZygoteReport::decode(&packet).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Some((report, passed)))
        })
    }

    /// The zygote's side: waits until the server has buffer space, which it always has soon.
    pub(super) fn report(
        &self,
        report: ZygoteReport,
        passed: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        self.send(&report.encode(), passed, 0)
    }

    /// The zygote's side: never waits. `None` when the server has ended.
    pub(super) fn next_order(&self) -> io::Result<Option<(ForkOrder, Option<OwnedFd>)>> {
        self.receive()?.map_or(Ok(None), |(packet, passed)| {
            let order = ForkOrder::decode(&packet).ok_or(io::ErrorKind::InvalidData)?;
            Ok(Some((order, passed)))
        })
    }

    fn send(
        &self,
        packet: &ControlPacket,
        passed: Option<BorrowedFd<'_>>,
        flags: i32,
    ) -> io::Result<()> {
        let mut part =
            libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: PACKET_BYTES };
        let mut room = ControlBuffer::EMPTY;
        // SAFETY: an all-zero msghdr is a valid empty one.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(passed) = passed {
            message.msg_control = room.0.as_mut_ptr().cast();
            // SAFETY: `room` is aligned for a cmsghdr and has CMSG_SPACE of one descriptor, so header and
            // data lie inside it.
            unsafe {
                message.msg_controllen = libc::CMSG_SPACE(DESCRIPTOR_BYTES) as usize;
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(DESCRIPTOR_BYTES) as usize;
                libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(passed.as_raw_fd());
            }
        }
        loop {
            // SAFETY: `message` points to `part` and `room`, which live until the call returns; the kernel
            // only reads them.
            let sent = unsafe {
                libc::sendmsg(self.0.as_raw_fd(), &raw const message, flags | libc::MSG_NOSIGNAL)
            };
            match interrupted(sent) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn receive(&self) -> io::Result<Option<(ControlPacket, Option<OwnedFd>)>> {
        let mut packet = [0; PACKET_BYTES];
        let mut part = libc::iovec { iov_base: packet.as_mut_ptr().cast(), iov_len: PACKET_BYTES };
        let mut room = ControlBuffer::EMPTY;
        // SAFETY: an all-zero msghdr is a valid empty one.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = room.0.as_mut_ptr().cast();
        message.msg_controllen = size_of::<ControlBuffer>();
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC;
        let received = loop {
            // SAFETY: `message` points to `part` and `room`, which live until the call returns and have the
            // lengths it states.
            let received = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, flags) };
            if !interrupted(received)? {
                break received;
            }
        };
        let passed = passed_descriptor(&message);
        match received {
            0 => Ok(None),
            n if n as usize == PACKET_BYTES => Ok(Some((packet, passed))),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Takes the one descriptor out of a received message. The buffer has space for one only.
fn passed_descriptor(message: &libc::msghdr) -> Option<OwnedFd> {
    // SAFETY: the kernel has filled msg_control up to msg_controllen; a header is read only where
    // CMSG_FIRSTHDR finds one. A descriptor that arrives is new and ours alone.
    unsafe {
        let header = libc::CMSG_FIRSTHDR(message);
        let is_descriptor = !header.is_null()
            && (*header).cmsg_level == libc::SOL_SOCKET
            && (*header).cmsg_type == libc::SCM_RIGHTS
            && (*header).cmsg_len >= libc::CMSG_LEN(DESCRIPTOR_BYTES) as usize;
        is_descriptor
            .then(|| OwnedFd::from_raw_fd(libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned()))
    }
}

fn interrupted(answer: isize) -> io::Result<bool> {
    if answer >= 0 {
        return Ok(false);
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(true) } else { Err(error) }
}

const DESCRIPTOR_BYTES: u32 = size_of::<RawFd>() as u32;

/// Space for the control message that carries one descriptor, aligned as its header needs.
struct ControlBuffer([u64; 3]);

impl ControlBuffer {
    const EMPTY: Self = Self([0; 3]);
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for ControlSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_comes_out_as_it_went_in() {
        let token = ForkToken(u64::MAX - 1);
        let order = ForkOrder { token, memory_bytes: 64 << 20, will_wait: true };
        assert_eq!(ForkOrder::decode(&order.encode()), Some(order));
        for report in [
            ZygoteReport::Ready(JailTier::from_bits(0x7_0fff)),
            ZygoteReport::Missing { layer: JailLayer::Limits, errno: 1 },
            ZygoteReport::Born(token),
            ZygoteReport::NotBorn { token, errno: 11 },
            ZygoteReport::Ended { token, end: ProcessEnd::Exited(3) },
            ZygoteReport::Ended { token, end: ProcessEnd::Signalled(31) },
        ] {
            assert_eq!(ZygoteReport::decode(&report.encode()), Some(report));
            assert_eq!(ForkOrder::decode(&report.encode()), None);
        }
    }

    #[test]
    fn a_descriptor_travels_with_its_packet_and_a_closed_end_is_seen() {
        let (server, zygote) = ControlSocket::pair().unwrap();
        let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        let order = ForkOrder { token: ForkToken(7), memory_bytes: 1, will_wait: false };
        server.order(order, a.as_fd()).unwrap();
        let (received, passed) = zygote.next_order().unwrap().unwrap();
        assert_eq!(received, order);
        drop((a, passed));
        assert_eq!(io::Read::read(&mut &b, &mut [0]).unwrap(), 0);

        assert_eq!(zygote.next_order().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        zygote.report(ZygoteReport::Born(ForkToken(7)), None).unwrap();
        drop(zygote);
        assert!(matches!(server.next_report(), Ok(Some((ZygoteReport::Born(ForkToken(7)), None)))));
        assert!(matches!(server.next_report(), Ok(None)));
    }
}

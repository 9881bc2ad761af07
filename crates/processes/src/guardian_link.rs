//! How descriptors get from the server to the warden: one packet, four descriptors.
#![expect(unsafe_code, reason = "descriptors that arrive are numbers until somebody owns them")]

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use tokio::io::unix::AsyncFd;

/// Both ends of a warden's control socket: packets, so that no message is ever half there.
pub(crate) fn pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
}

/// The server's end, to be waited for.
pub(crate) fn watched(control: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` stays open and the same until it is dropped, which is after the watching.
    Ok(unsafe { AsyncFd::register(control) }?)
}

/// Sends the socket of a new guardian and the streams of its program.
pub(crate) fn send(control: &OwnedFd, descriptors: &[OwnedFd; 4]) -> nix::Result<()> {
    let numbers = descriptors.each_ref().map(std::os::fd::AsRawFd::as_raw_fd);
    let rights = [ControlMessage::ScmRights(&numbers)];
    sendmsg::<()>(control.as_raw_fd(), &[IoSlice::new(b"g")], &rights, MsgFlags::MSG_NOSIGNAL, None)
        .map(drop)
}

/// What arrived at a warden.
pub(crate) enum Received {
    /// A guardian's socket and streams.
    Descriptors([OwnedFd; 4]),
    /// Nothing, or nonsense.
    Nothing,
    /// The server is gone.
    Gone,
}

/// Receives without waiting.
pub(crate) fn receive(control: &OwnedFd) -> nix::Result<Received> {
    let mut byte = [0];
    let mut slices = [IoSliceMut::new(&mut byte)];
    let mut space = cmsg_space!([RawFd; 4]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = match recvmsg::<()>(control.as_raw_fd(), &mut slices, Some(&mut space), flags) {
        Ok(message) => message,
        Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Received::Nothing),
        Err(error) => return Err(error),
    };
    let mut descriptors = vec![];
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel has just made these descriptors for us; nobody else knows their numbers.
            descriptors
                .extend(numbers.iter().map(|number| unsafe { OwnedFd::from_raw_fd(*number) }));
        }
    }
    match <[OwnedFd; 4]>::try_from(descriptors) {
        Ok(descriptors) => Ok(Received::Descriptors(descriptors)),
        Err(_) if message.bytes == 0 => Ok(Received::Gone),
        Err(_) => Ok(Received::Nothing),
    }
}

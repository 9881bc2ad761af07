//! Passes descriptors between the server, the fork server and subreapers.
#![expect(unsafe_code, reason = "descriptors that arrive are numbers until somebody owns them")]

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, recvmsg,
    sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;

/// Creates both ends of a fork server's control socket. It transfers packets, so that no message is ever
/// partial.
pub(crate) fn pair() -> nix::Result<(OwnedFd, OwnedFd)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags)
}

/// Registers the server's end with the runtime.
pub(crate) fn watched(control: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` owns its descriptor until it is dropped, which is after the registration ends.
    Ok(unsafe { AsyncFd::register(control) }?)
}

/// Sends a fork server the socket of a new subreaper.
pub(crate) fn send(control: &OwnedFd, link: &OwnedFd) -> nix::Result<()> {
    send_with(control, b"g", &[link]).map(drop)
}

/// What a fork server has received.
pub(crate) enum ForkServerPacket {
    /// A subreaper's socket.
    Link(OwnedFd),
    /// Nothing, or an invalid packet.
    Nothing,
    /// The server has ended.
    Gone,
}

/// Receives without waiting.
pub(crate) fn receive(control: &OwnedFd) -> nix::Result<ForkServerPacket> {
    match receive_with(control, &mut [0]) {
        Ok((_, Some([link]))) => Ok(ForkServerPacket::Link(link)),
        Ok((0, None)) => Ok(ForkServerPacket::Gone),
        Ok((_, None)) | Err(Errno::EAGAIN | Errno::EINTR) => Ok(ForkServerPacket::Nothing),
        Err(error) => Err(error),
    }
}

/// Sends a subreaper its program's streams and its order. If that fails, the subreaper has started nothing.
pub(crate) async fn give(
    link: &mut UnixStream,
    order: &[u8],
    streams: &[OwnedFd; 3],
) -> io::Result<()> {
    let send = || Ok(send_with(link, order, &streams.each_ref())?);
    let n_sent = link.async_io(Interest::WRITABLE, send).await?;
    link.write_all(&order[n_sent..]).await
}

/// The streams of a subreaper's next program, which come with the first byte of its order. Waits for them.
pub(crate) fn take_streams(link: &impl AsFd) -> io::Result<(u8, [OwnedFd; 3])> {
    let mut first = [0];
    loop {
        match receive_with(link, &mut first) {
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((_, Some(streams))) => return Ok((first[0], streams)),
            // A request for the previous family, which had ended when it arrived.
            Ok((_, None)) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn send_with<const N: usize>(
    socket: &impl AsFd,
    bytes: &[u8],
    descriptors: &[&OwnedFd; N],
) -> nix::Result<usize> {
    let numbers = descriptors.map(|descriptor| descriptor.as_raw_fd());
    let rights = [ControlMessage::ScmRights(&numbers)];
    let socket = socket.as_fd().as_raw_fd();
    sendmsg::<()>(socket, &[IoSlice::new(bytes)], &rights, MsgFlags::MSG_NOSIGNAL, None)
}

/// How many bytes arrived, and the descriptors, if there were exactly this many.
fn receive_with<const N: usize>(
    socket: &impl AsFd,
    bytes: &mut [u8],
) -> nix::Result<(usize, Option<[OwnedFd; N]>)> {
    let mut slices = [IoSliceMut::new(bytes)];
    let mut space = cmsg_space!([RawFd; N]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let socket = socket.as_fd().as_raw_fd();
    let message = recvmsg::<()>(socket, &mut slices, Some(&mut space), flags)?;
    let mut descriptors = vec![];
    for part in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(numbers) = part {
            // SAFETY: the kernel has just created these descriptors for us; nothing else refers to them.
            descriptors
                .extend(numbers.iter().map(|number| unsafe { OwnedFd::from_raw_fd(*number) }));
        }
    }
    Ok((message.bytes, <[OwnedFd; N]>::try_from(descriptors).ok()))
}

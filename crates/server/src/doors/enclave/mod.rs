//! enclave: `/sessions` and `/enclave/ws`. Its "session" is an execution whose name the caller chose.

mod follow;
mod inbound;
mod outbound;
mod refusals;
mod routes;
mod sessions;
mod socket;
mod tape;

pub(super) use routes::open_door;

use crate::door::DoorState;
use sessions::EnclaveSessions;

/// The state that the handlers of this door share.
type EnclaveState = DoorState<EnclaveSessions>;

//! hotrepl: sessions whose definitions persist, at `/repl`. One client holds a session; the next one takes it over.
//! The crate `repl` implements the sessions.

mod routes;

pub(super) use routes::open_door;

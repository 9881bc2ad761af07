//! hotrepl: sessions whose definitions stay, at `/repl`. One client holds a session; the next one takes it over. What a session
//! does is in the crate `repl`.

mod routes;

pub(super) use routes::open_door;

//! tally: how many executions a caller has, at `/tally`.

mod routes;

pub(super) use routes::open_door;

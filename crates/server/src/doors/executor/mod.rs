//! executor: `/api/executions`. Its "execution id" is a question's id; this server's own ids, `run_…`, are accepted
//! too.

mod answers;
mod callback;
mod continuing;
mod ended;
mod events;
mod follow;
mod inbound;
mod outbound;
mod routes;
mod session_routes;
mod since;

pub(super) use routes::open_door;

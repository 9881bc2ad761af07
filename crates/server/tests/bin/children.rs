//! The children that a server starts itself again for: runners' zygotes and the process tool's fork server. Nothing else.

fn main() {
    sandbox::enter_if_asked();
    processes::enter_if_asked();
}

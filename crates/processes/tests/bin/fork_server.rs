//! The product's fork server and nothing else.

fn main() {
    processes::enter_if_asked();
}

//! Runs only the product's fork server.

fn main() {
    processes::enter_if_asked();
}

//! The product's warden and nothing else.

fn main() {
    processes::enter_if_asked();
}

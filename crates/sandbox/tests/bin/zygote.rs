//! Runs only the product's zygote.

fn main() {
    sandbox::enter_if_asked();
}

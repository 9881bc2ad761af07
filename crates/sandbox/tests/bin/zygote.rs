//! The product's zygote and nothing else.

fn main() {
    sandbox::enter_if_asked();
}

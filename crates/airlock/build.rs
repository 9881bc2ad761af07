//! Has the linker put the functions that every request passes through side by side, in the order of `layout.txt`.
//!
//! A small program is answered in less time than it takes to fetch code from memory that lies all over a binary of this
//! size: side by side it takes a tenth less of the processors. `cargo xtask layout` writes the list anew.

use std::path::Path;
use std::process::Command;

const LAYOUT: &str = "layout.txt";

fn main() {
    println!("cargo:rerun-if-changed={LAYOUT}");
    println!("cargo:rerun-if-changed=build.rs");
    let is_optimised = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where it is");
    let layout = Path::new(&folder).join(LAYOUT);
    let wishes = [
        format!("-Wl,--symbol-ordering-file={}", layout.display()),
        // Functions come and go; those that are not there any more are no reason to complain.
        "-Wl,--no-warn-symbol-ordering".to_owned(),
    ];
    if is_optimised && is_understood(&wishes) {
        for wish in wishes {
            println!("cargo:rustc-link-arg-bins={wish}");
        }
    }
}

/// Whether the linker of this build knows what is meant. Not all do, and what they build is as good, if slower.
fn is_understood(wishes: &[String]) -> bool {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let (rustc, target, out) = (variable("RUSTC"), variable("TARGET"), variable("OUT_DIR"));
    let source = Path::new(&out).join("smallest.rs");
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a build script asks the compiler and waits for it"
    )]
    let mut trial = Command::new(rustc);
    trial.args(["--crate-name", "smallest", "--target", &target, "-o"]);
    trial.arg(Path::new(&out).join("smallest")).arg(&source);
    if let Ok(linker) = std::env::var("RUSTC_LINKER") {
        trial.arg(format!("-Clinker={linker}"));
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    trial.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    trial.args(wishes.iter().map(|wish| format!("-Clink-arg={wish}")));
    trial.output().is_ok_and(|done| done.status.success())
}

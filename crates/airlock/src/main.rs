//! The program that users start. All of its code is in the library.

fn main() -> std::process::ExitCode {
    verbs::main()
}

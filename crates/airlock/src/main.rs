//! The program that users start. All of it is in the library beside.

fn main() -> std::process::ExitCode {
    verbs::main()
}

//! The `clqd` binary; everything is in the library.

fn main() -> std::process::ExitCode {
    clqd::cli::main()
}

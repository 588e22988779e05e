//! The `clqd` binary; everything is in the library.

use clap::Parser;
#[derive(Parser)]
enum C {
    Replay(clqd::cli::replay::ReplayArgs),
    Export(clqd::cli::export::ExportArgs),
}
fn main() -> anyhow::Result<std::process::ExitCode> {
    let config = clqd::config::Config::default();
    match C::parse() {
        C::Replay(a) => clqd::cli::replay::run(&a, &config),
        C::Export(a) => clqd::cli::export::run(&a, &config),
    }
}

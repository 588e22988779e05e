//! `clqd token`: tokens for programs on other machines.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::arguments::parse_tag;
use crate::api::Permission;
use crate::api::json::to_string;
use crate::cli::context::CliContext;
use crate::cli::stdio::{Output, note};
use crate::web::{TokenHash, new_token};

#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Make a token for a program on another machine
    ///
    /// Prints the token, which the program sends as Authorization: Bearer, and a section for the configuration file.
    /// Only the program has the token: the section has its SHA-256. A reload applies the section.
    New {
        /// For the log, such as deploy
        #[arg(value_parser = parse_tag)]
        name: String,
        /// read, rescan, servers, corrections, scan or replicate; repeatable
        #[arg(long, value_name = "WHAT", required = true, value_parser = Permission::parse)]
        may: Vec<Permission>,
    },
}

pub fn run(command: TokenCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    let TokenCommand::New { name, may } = command;
    let token = new_token()?;
    let hash = TokenHash::of(&token).to_string();
    let permissions: BTreeSet<&str> = may.iter().map(|permission| permission.name()).collect();
    let permissions: Vec<&str> = permissions.into_iter().collect();
    let mut out = Output::lasting();
    if app.json() {
        let row = json!({"kind": "token", "token": token, "name": name, "hash": hash, "may": permissions});
        writeln!(out, "{}", to_string(&row))?;
        return Ok(ExitCode::SUCCESS);
    }
    note("The token, for the program. It is shown only now.");
    writeln!(out, "{token}\n")?;
    note("For the configuration file; then: clqd reload");
    writeln!(out, "[[web.token]]\nname = {name:?}\nhash = {hash:?}\nmay = {permissions:?}")?;
    Ok(ExitCode::SUCCESS)
}

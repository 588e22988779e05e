//! `clqd token`: tokens for programs on other machines.

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::json;

use super::arguments::parse_tag;
use crate::api::Permission;
use crate::api::json::to_string;
use crate::cli::context::CliContext;
use crate::cli::stdio::Output;
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
        /// What it permits; may be repeated
        #[arg(long, value_name = "WHAT", required = true, value_parser = parse_permission)]
        may: Vec<Permission>,
    },
}

pub fn run(command: TokenCommand, app: &CliContext) -> anyhow::Result<ExitCode> {
    let TokenCommand::New { name, mut may } = command;
    let token = new_token()?;
    let hash = TokenHash::of(&token).to_string();
    let mut permissions: Vec<&str> = Vec::new();
    may.dedup();
    may.iter().map(|permission| permission.name()).for_each(|name| permissions.push(name));
    let mut out = Output::lasting();
    if app.json() {
        let row = json!({"kind": "token", "token": token, "name": name, "hash": hash, "may": permissions});
        writeln!(out, "{}", to_string(&row))?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(out, "{token}\n")?;
    writeln!(out, "[[web.token]]\nname = {name:?}\nhash = {hash:?}\nmay = {permissions:?}")?;
    Ok(ExitCode::SUCCESS)
}

fn parse_permission(text: &str) -> Result<Permission, String> {
    Permission::parse(text)
}

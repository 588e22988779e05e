//! `clqd migrate`: creates the archive's MySQL tables, or migrates them.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;

use crate::api::json;
use crate::archive::{Archive, ArchiveSettings, MigrationReport, Routines, SCHEMA_SQL};
use crate::cli::context::CliContext;
use crate::cli::stdio::Output;

/// Create the archive's MySQL tables, or migrate them
#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    /// Print the schema and change nothing
    #[arg(long)]
    pub print: bool,
}

pub fn run(args: &MigrateArgs, app: &CliContext) -> anyhow::Result<ExitCode> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let text = runtime.block_on(migrate(&app.config()?.archive_settings(), args))?;
    let kind = if args.print { "schema" } else { "migrated" };
    let mut out = if args.print { Output::ending() } else { Output::lasting() };
    match app.json() {
        true => writeln!(out, "{}", json::to_string(&serde_json::json!({ "kind": kind, "text": text })))?,
        false => writeln!(out, "{text}")?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the text to print. Error: the archive is unusable, with advice.
pub async fn migrate(settings: &ArchiveSettings, args: &MigrateArgs) -> anyhow::Result<String> {
    if args.print {
        return Ok(SCHEMA_SQL.to_owned());
    }
    let mut archive = Archive::connect(settings).await.context("cannot open the archive")?;
    let migrated = archive.migrate().await.context("cannot apply the schema")?;
    archive.close().await;
    Ok(report_text(&settings.target(), &migrated))
}

fn report_text(target: &str, migrated: &MigrationReport) -> String {
    let MigrationReport { from, to, routines } = migrated;
    let version = match from {
        None => format!("archive {target}: created, schema version {to}"),
        Some(from) if from == to => format!("archive {target}: up to date, schema version {to}"),
        Some(from) => format!("archive {target}: migrated from schema version {from} to {to}"),
    };
    let advice = "clqd does not need them; websites need them for positions in running weeks. To create them, run `clqd migrate` as an \
                  account that may create functions, or set log_bin_trust_function_creators=1 temporarily.";
    match routines {
        Routines::Ready => version,
        Routines::Kept { why } => {
            format!("{version}\nFunctions were not replaced: this account may not replace them ({why}).\n{advice}")
        }
        Routines::Missing { why } => {
            format!("{version}\nFunctions are missing: they cannot be created ({why}).\n{advice}")
        }
    }
}

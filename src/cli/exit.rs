//! Exit codes and error output of a command.
//!
//! Exit codes: 0 success, 1 failure, 2 usage error. A usage error is an invalid command
//! line, a missing `--yes`, or a request that the daemon rejects as malformed.
//!
//! Without `--json` an error is printed to standard error. With `--json` it is the last
//! line of standard output, `{"kind":"error","code":...,"message":...}`, so that a
//! program reads one stream.

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use serde::Serialize;

use crate::api::json;
use crate::api::{ApiError, ErrorCode};
use crate::cli::aliases;
use crate::cli::arguments::UrlArgumentError;
use crate::cli::output::format::sanitize_multiline;
use crate::cli::screen;
use crate::cli::stdio::{note, say};
use crate::client::ClientError;

/// Exit code of a usage error.
const EXIT_USAGE: u8 = 2;

/// A command line that is valid for the parser but not for the command.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// No process listens on the control socket.
#[derive(Debug, thiserror::Error)]
#[error("The daemon is not running (no process listens on {}). Start it with `systemctl start clqd` or `{run}`.", socket.display())]
pub struct DaemonNotRunning {
    pub socket: PathBuf,
    /// The command that starts this daemon by hand.
    pub run: String,
}

/// No process listens on the control socket, and there is no state to read.
#[derive(Debug, thiserror::Error)]
#[error(
    "the daemon is not running, and has not run yet: {} does not exist\n  \
     start it with: systemctl start clqd     another daemon: --config or --socket",
    state_dir.display()
)]
pub struct NeverStarted {
    pub state_dir: PathBuf,
}

/// Returns the exit code of a command that failed with this error.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(if classify(error).is_misuse { EXIT_USAGE } else { 1 })
}

/// Prints the error, once.
pub fn report(error: &anyhow::Error, json: bool) {
    match json {
        true => print_json(&classify(error).name, &format!("{error:#}")),
        false => note(format_args!("clqd: {}", sanitize_multiline(&format!("{error:#}")))),
    }
}

/// Prints a command line error, or the requested help.
pub fn report_usage(mut error: clap::Error, json: bool) -> ExitCode {
    let bad_url = error.source().and_then(|cause| cause.downcast_ref()).map(UrlArgumentError::to_string);
    if let Some(text) = unknown_command(&error).or(bad_url) {
        let error = UsageError(text).into();
        report(&error, json);
        return exit_code(&error);
    }
    omit_tips(&mut error);
    // Help and version are no errors.
    if json && error.use_stderr() {
        let text = error.to_string();
        print_json("usage", text.trim().strip_prefix("error: ").unwrap_or(text.trim()));
    } else {
        print_usage(&error);
    }
    ExitCode::from(error.exit_code() as u8)
}

/// Prints an error of the parser or the requested help. The parser wraps only help.
fn print_usage(error: &clap::Error) {
    let text = error.to_string();
    let width = screen::size_of(io::stderr()).map_or(usize::MAX, |(columns, _)| columns);
    if error.use_stderr()
        && error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        && text.lines().any(|line| line.chars().count() > width)
    {
        note(text.trim_end());
    } else {
        // A closed standard error cannot be reported.
        let _ = error.print();
    }
}

/// The error of a command that does not exist.
fn unknown_command(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    // `Usage: clqd cluster [OPTIONS] <COMMAND>`
    let usage = error.get(ContextKind::Usage).map_or_else(String::new, |usage| usage.to_string());
    let group = usage.split_whitespace().skip(1).take_while(|word| !word.starts_with(['[', '<']));
    let suggested = aliases::suggestions(unknown, &group.collect::<Vec<_>>().join(" "));
    let help = match suggested.is_empty() {
        true => "`clqd --help` lists all commands".to_owned(),
        false => format!("did you mean: {}", suggested.join(", ")),
    };
    Some(format!("there is no command {unknown:?}; {help}"))
}

/// Removes the advice to write an unknown option after two hyphens: nearly nobody means a value by it.
fn omit_tips(error: &mut clap::Error) {
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let useful: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value, use")).collect();
        if !useful.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(useful));
        }
    }
}

fn print_json(code: &str, message: &str) {
    #[derive(Serialize)]
    struct Line<'l> {
        kind: &'static str,
        code: &'l str,
        message: &'l str,
    }
    say(json::to_string(&Line { kind: "error", code, message }));
}

struct ErrorInfo {
    name: String,
    is_misuse: bool,
}

/// Classifies an error by the daemon's code, if it has one.
fn classify(error: &anyhow::Error) -> ErrorInfo {
    let named = |name: &str| ErrorInfo { name: name.to_owned(), is_misuse: false };
    for cause in error.chain() {
        if cause.is::<UsageError>() {
            return ErrorInfo { name: "usage".to_owned(), is_misuse: true };
        }
        if cause.is::<DaemonNotRunning>() || cause.is::<NeverStarted>() {
            return named("not_running");
        }
        if let Some(failure) = cause.downcast_ref::<ApiError>() {
            return from_api_error(failure);
        }
        match cause.downcast_ref::<ClientError>() {
            Some(ClientError::NotRunning(_)) => return named("not_running"),
            Some(ClientError::PermissionDenied { .. }) => return named("permission_denied"),
            Some(ClientError::TimedOut { .. }) => return named("timeout"),
            Some(ClientError::ConnectionLost { .. } | ClientError::Closed) => return named("connection_lost"),
            Some(ClientError::ProtocolError { .. }) => return named("protocol_error"),
            Some(ClientError::Failure(failure)) => return from_api_error(failure),
            Some(ClientError::Output(_)) | None => {}
        }
    }
    named("failed")
}

/// The code of a failed request.
pub fn api_code(error: &anyhow::Error) -> Option<ErrorCode> {
    error.chain().find_map(|cause| match cause.downcast_ref() {
        Some(ClientError::Failure(failure)) => Some(failure.code),
        _ => cause.downcast_ref().map(|failure: &ApiError| failure.code),
    })
}

fn from_api_error(failure: &ApiError) -> ErrorInfo {
    let name = serde_json::to_value(failure.code).ok().and_then(|code| code.as_str().map(str::to_owned));
    ErrorInfo { name: name.unwrap_or_else(|| "failed".to_owned()), is_misuse: failure.code == ErrorCode::BadRequest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_separate_usage_errors_from_failures() {
        let failure = |code| anyhow::Error::from(ClientError::Failure(ApiError::new(code, "m")));
        for (error, name, is_misuse) in [
            (failure(ErrorCode::BadRequest), "bad_request", true),
            (failure(ErrorCode::NotFound), "not_found", false),
            (failure(ErrorCode::NotFound).context("the request failed"), "not_found", false),
            (ApiError::new(ErrorCode::Refused, "m").into(), "refused", false),
            (UsageError("add --yes".to_owned()).into(), "usage", true),
            (ClientError::Closed.into(), "connection_lost", false),
            (anyhow::anyhow!("something"), "failed", false),
        ] {
            let code = classify(&error);
            assert_eq!((code.name.as_str(), code.is_misuse), (name, is_misuse), "{error:#}");
        }
    }
}

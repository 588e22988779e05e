//! `clqd cluster join`: gets the state of another engine, so that this machine's engine can follow.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::copy::hex;
use crate::api::requests::{ClusterCopy, StatePart};
use crate::api::{AnswerLine, Line, Request, json};
use crate::daemon::agent;

/// A line of the answer is at most so long, bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The engine that is copied.
#[derive(Clone, Debug)]
pub struct Source {
    /// The start of its address: `https://a.example.org`.
    pub url: String,
    pub token: String,
    /// A certificate of the authority that its certificate is from; `None`: those of the system's list.
    pub ca: Option<PathBuf>,
}

/// Writes a copy of the state of another engine into a new directory. Every file is compared with its hash.
pub fn get_copy(source: &Source, dir: &Path) -> anyhow::Result<()> {
    let url = source.url.trim_end_matches('/');
    ensure!(
        url.starts_with("https://") || url.starts_with("http://"),
        "{url:?}: expected the start of a URL, such as https://a.example.org"
    );
    let agent = agent::new(source.ca.as_deref(), None)?;
    let request = agent.post(format!("{url}/api/v1/{}", ClusterCopy::NAME.replace('.', "/")));
    let request = request.header("Content-Type", "application/json");
    let request = request.header("Authorization", format!("Bearer {}", source.token));
    let mut response = request.send(&json::to_vec(&ClusterCopy {})[..]).context("cannot reach the engine")?;
    let status = response.status();
    if !status.is_success() {
        let text = response.body_mut().with_config().limit(LINE_BYTES_MAX).read_to_string().unwrap_or_default();
        let problem: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        bail!("the engine has refused: {status}: {}", problem["detail"].as_str().unwrap_or("no reason was given"));
    }
    let mut lines = BufReader::with_capacity(1 << 20, response.body_mut().as_reader());
    let mut files = Files { dir, open: None };
    loop {
        let mut line = Vec::new();
        if (&mut lines).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).context("the answer was cut")? == 0 {
            break;
        }
        match AnswerLine::find(&line).transpose().context("the answer is not valid")? {
            None => files.add(StatePart::parse(&line).context("the answer is not valid")?)?,
            Some(AnswerLine::Error(error)) => bail!("the engine has failed: {error}"),
            Some(AnswerLine::Progress(_) | AnswerLine::Notes(_)) => {}
        }
    }
    ensure!(files.open.is_none(), "the answer was cut in the middle of a file");
    Ok(())
}

/// The files that are being written.
struct Files<'d> {
    dir: &'d Path,
    open: Option<OpenFile>,
}

struct OpenFile {
    name: String,
    file: File,
    hash: Sha256,
}

impl Files<'_> {
    fn add(&mut self, part: StatePart) -> anyhow::Result<()> {
        let mut open = match self.open.take().filter(|open| open.name == part.file) {
            Some(open) => open,
            None => self.create(part.file)?,
        };
        let bytes = STANDARD.decode(&part.bytes).context("a part of a file is not valid")?;
        open.file.write_all(&bytes).with_context(|| format!("cannot write {}", open.name))?;
        open.hash.update(&bytes);
        let Some(sha256) = part.sha256 else {
            self.open = Some(open);
            return Ok(());
        };
        ensure!(hex(&open.hash.finalize()) == sha256, "{} differs from its hash: copy again", open.name);
        open.file.sync_all().with_context(|| format!("cannot write {}", open.name))
    }

    /// Creates a file. Its name came over the network.
    fn create(&self, name: String) -> anyhow::Result<OpenFile> {
        let is_plain = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
        ensure!(is_plain && !name.is_empty(), "the engine sends a file {name:?}");
        let path = self.dir.join(&name);
        let parent = path.parent().unwrap_or(self.dir);
        std::fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(OpenFile { name, file, hash: Sha256::new() })
    }
}

//! A plain HTTP/1.1 client, so that the tests see what is on the wire.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// Longest wait for bytes of an answer. A passing test needs far less.
const READ_TIMEOUT: Duration = Duration::from_secs(90);

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("UTF-8")
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Checks that it is an error of this status and type.
    #[track_caller]
    pub fn assert_problem(&self, status: u16, name: &str) {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!((&problem["type"], &problem["status"]), (&format!("/problems/{name}").into(), &status.into()));
        assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    }
}

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the web interface");
    stream.set_read_timeout(Some(READ_TIMEOUT)).expect("a timeout");
    stream
}

pub fn get(address: &str, path: &str) -> Answer {
    request(address, "GET", path, "")
}

/// Sends a request over a connection of its own. `headers` are lines, each with its end.
pub fn request(address: &str, method: &str, path: &str, headers: &str) -> Answer {
    let mut stream = connect(address);
    let head = format!("{method} {path} HTTP/1.1\r\nhost: clqd\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    read_answer(&mut stream)
}

/// A URL as one segment of a path.
pub fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Opens a stream of server-sent events.
pub fn watch(address: &str, path: &str) -> BufReader<TcpStream> {
    watch_with(address, path, "")
}

/// The same, with further headers.
pub fn watch_with(address: &str, path: &str, headers: &str) -> BufReader<TcpStream> {
    let mut stream = connect(address);
    let head = format!("GET {path} HTTP/1.1\r\nhost: clqd\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    BufReader::new(stream)
}

/// The next event of a stream: its name and its data.
pub fn next_event(stream: &mut BufReader<TcpStream>) -> (String, Value) {
    let (_, name, data) = next_event_with_id(stream);
    (name, data)
}

/// The same, after its id.
pub fn next_event_with_id(stream: &mut BufReader<TcpStream>) -> (String, String, Value) {
    let (mut id, mut name) = (String::new(), String::new());
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("a line") > 0, "the stream has ended");
        if let Some(event) = line.strip_prefix("event: ") {
            name = event.trim().to_owned();
        }
        if let Some(text) = line.strip_prefix("id: ") {
            id = text.trim().to_owned();
        }
        if let Some(data) = line.strip_prefix("data: ") {
            return (id, name, serde_json::from_str(data).expect("JSON"));
        }
    }
}

/// Reads until the server closes the connection.
pub fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an answer");
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("the end of the head");
    let head = std::str::from_utf8(&bytes[..end]).expect("ASCII");
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok()).expect(head);
    let header = |line: &str| {
        let (name, value) = line.split_once(':').expect(line);
        (name.to_ascii_lowercase(), value.trim().to_owned())
    };
    let headers: Vec<_> = lines.map(header).collect();
    let mut body = bytes[end + 4..].to_vec();
    let has = |name: &str, text: &str| headers.iter().any(|(known, value)| known == name && value == text);
    if has("transfer-encoding", "chunked") {
        body = unchunked(&body);
    }
    if has("content-encoding", "gzip") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&body[..]).read_to_end(&mut plain).expect("gzip");
        body = plain;
    }
    Answer { status, headers, body }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = bytes.windows(2).position(|window| window == b"\r\n").expect("the size of a chunk");
        let size = std::str::from_utf8(&bytes[..end]).expect("hexadecimal digits");
        let size = usize::from_str_radix(size, 16).expect(size);
        bytes = &bytes[end + 2..];
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
}

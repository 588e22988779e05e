//! Lists of servers on websites, over HTTP and HTTPS: Steam's Web API, DDNet, BZFlag and FiveM.
//!
//! The query of a URL may hold an API key, so it is sent and never printed: `Display` and `Debug`
//! omit it, and so does every error. Certificates are checked against Mozilla's roots, which are
//! compiled in. The variables `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` apply.

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;
use std::time::Duration;

use tokio::sync::oneshot;
use ureq::http::{StatusCode, Uri};

use super::server_list::ServerList;
use super::web_format::{WebListError, parse_web_list};
use crate::limits::HTTP_LIST_BYTES_MAX;

/// Most redirects that are followed.
const REDIRECTS_MAX: u32 = 5;

/// The URL of a list on a website.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpUrl {
    /// As given, with the query.
    text: String,
    /// The URL without its query.
    public: String,
    is_https: bool,
}

/// The text is not the URL of a list on a website.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("URL of a list {url:?}: {problem}")]
pub struct HttpUrlError {
    /// The URL without its query.
    url: String,
    problem: &'static str,
}

impl HttpUrl {
    /// With the query, to store it in a configuration.
    pub fn into_secret_text(self) -> String {
        self.text
    }
}

impl FromStr for HttpUrl {
    type Err = HttpUrlError;

    fn from_str(text: &str) -> Result<HttpUrl, HttpUrlError> {
        let scheme_end = text.find("://").unwrap_or(0);
        let text = [&text[..scheme_end].to_ascii_lowercase(), &text[scheme_end..]].concat();
        let public = text.split(['?', '#']).next().unwrap_or_default();
        let refuse = |problem| HttpUrlError { url: public.to_owned(), problem };
        let uri: Uri = text.parse().map_err(|_| refuse("not a valid URL; special characters must be %-encoded"))?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(refuse("expected http://HOST/PATH or https://HOST/PATH")),
        };
        let authority = uri.authority().ok_or_else(|| refuse("it has no host"))?;
        if authority.host().is_empty() {
            return Err(refuse("it has no host"));
        }
        if authority.as_str().contains('@') {
            let url = format!("{}://{}{}", uri.scheme_str().unwrap_or_default(), authority.host(), uri.path());
            return Err(HttpUrlError { url, problem: "user names and passwords are not supported" });
        }
        Ok(HttpUrl { public: public.to_owned(), is_https, text })
    }
}

/// Shows the URL without its query.
impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.public)
    }
}

/// Shows the URL without its query.
impl fmt::Debug for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.public, f)
    }
}

/// Why a website returned no list. The caller names the URL.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    #[error("the request failed")]
    Request(#[source] ureq::Error),
    #[error("the website redirects to an invalid URL")]
    BadRedirect,
    #[error("the website redirects to a URL without https")]
    Downgrade,
    #[error("the website responded with status {0}")]
    Status(StatusCode),
    #[error("the list could not be received completely")]
    Body(#[source] io::Error),
    #[error("the list has more than {0} bytes")]
    TooLarge(usize),
    #[error(transparent)]
    NotAList(#[from] WebListError),
}

/// Limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct HttpLimits {
    /// Timeout for connecting, for all addresses of the host together.
    pub connect: Duration,
    /// Timeout for the whole request, redirects included.
    pub total: Duration,
    /// Largest list.
    pub bytes_max: usize,
}

impl Default for HttpLimits {
    fn default() -> HttpLimits {
        HttpLimits { connect: Duration::from_secs(10), total: Duration::from_secs(60), bytes_max: HTTP_LIST_BYTES_MAX }
    }
}

/// The name that websites see. `contact`: the setting `scan.contact`, may be empty.
pub fn user_agent(contact: &str) -> String {
    let product = concat!("clqd/", env!("CARGO_PKG_VERSION"));
    // A header is ASCII, and parentheses end the comment.
    let contact = contact.replace(|c: char| !matches!(c, ' '..='~') || matches!(c, '(' | ')' | '\\'), " ");
    match contact.trim() {
        "" => product.to_owned(),
        contact => format!("{product} ({contact})"),
    }
}

/// Fetches a list. It blocks a thread of its own, not a runtime; a process that ends does not
/// wait for it.
pub async fn fetch(url: &HttpUrl, user_agent: &str, limits: HttpLimits) -> Result<ServerList, HttpError> {
    let (done, result) = oneshot::channel();
    let (url, user_agent) = (url.clone(), user_agent.to_owned());
    let get = move || {
        // If the import was stopped, nobody waits for the result.
        let _ = done.send(get(&url, &user_agent, limits));
    };
    std::thread::Builder::new().name("http-list".to_owned()).spawn(get).map_err(HttpError::Thread)?;
    result.await.expect("the thread sends its result")
}

fn get(url: &HttpUrl, user_agent: &str, limits: HttpLimits) -> Result<ServerList, HttpError> {
    let agent = ureq::Agent::config_builder()
        .user_agent(user_agent)
        .timeout_connect(Some(limits.connect))
        .timeout_global(Some(limits.total))
        .max_redirects(REDIRECTS_MAX)
        .https_only(url.is_https)
        .http_status_as_error(false)
        .build()
        .new_agent();
    let mut response = agent.get(&url.text).call().map_err(request_error)?;
    let status = response.status();
    if status != StatusCode::OK {
        return Err(HttpError::Status(status));
    }
    let mut bytes = Vec::new();
    let mut body = response.body_mut().as_reader().take(limits.bytes_max as u64 + 1);
    body.read_to_end(&mut bytes).map_err(HttpError::Body)?;
    if bytes.len() > limits.bytes_max {
        return Err(HttpError::TooLarge(limits.bytes_max));
    }
    Ok(parse_web_list(&bytes)?)
}

fn request_error(error: ureq::Error) -> HttpError {
    match error {
        // The messages of these errors contain the complete URL.
        ureq::Error::BadUri(_) | ureq::Error::Http(_) => HttpError::BadRedirect,
        ureq::Error::RequireHttpsOnly(_) => HttpError::Downgrade,
        error => HttpError::Request(error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::thread::JoinHandle;

    use super::*;

    const LIST: &str = r#"{"response":{"servers":[{"addr":"192.0.2.1:27015"},{"addr":"host:1"}]}}"#;

    /// Answers one request. Returns the address, and the request when it has ended.
    fn website(response: Vec<u8>) -> (SocketAddr, JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = move || {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(&stream).lines().map(Result::unwrap);
            let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            // The client may close the connection before it has read everything.
            let _ = stream.write_all(&response);
            request.join("\n")
        };
        (address, std::thread::spawn(answer))
    }

    fn response(head: &str, body: &str) -> Vec<u8> {
        format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
    }

    /// Fetches `/list?key=SECRET`. Returns the list or the text of the error, and the request.
    async fn fetch_from(response: Vec<u8>, limits: HttpLimits) -> (Result<ServerList, String>, String) {
        let (address, request) = website(response);
        let url: HttpUrl = format!("http://{address}/list?key=SECRET").parse().unwrap();
        let fetched = fetch(&url, &user_agent("scans@example.org"), limits).await;
        let fetched = fetched.map_err(|error| {
            let debug = format!("{error:?}");
            format!("{:#} {debug}", anyhow::Error::new(error))
        });
        if let Err(error) = &fetched {
            assert!(!error.contains("SECRET"), "{error}");
        }
        (fetched, request.join().unwrap())
    }

    #[tokio::test]
    async fn list_is_fetched_with_key_and_user_agent() {
        let (list, request) = fetch_from(response("200 OK", LIST), HttpLimits::default()).await;
        let list = list.unwrap();
        assert_eq!(
            (list.servers.into_values().collect::<Vec<_>>(), list.invalid),
            (vec!["source"], vec!["host:1".to_owned()])
        );
        let want = format!("user-agent: clqd/{} (scans@example.org)", env!("CARGO_PKG_VERSION"));
        assert!(request.starts_with("GET /list?key=SECRET HTTP/1.1\n"), "{request}");
        assert!(request.lines().any(|line| line.eq_ignore_ascii_case(&want)), "{request}");
    }

    #[tokio::test]
    async fn list_of_each_format_is_recognised() {
        let bzflag = "host:5155 BZFS0221 0000 192.0.2.1 a title\n";
        let (list, _) = fetch_from(response("200 OK", bzflag), HttpLimits::default()).await;
        let list = list.unwrap();
        assert_eq!(list.servers.into_iter().collect::<Vec<_>>(), [("192.0.2.1:5155".parse().unwrap(), "bzflag")]);
        let fivem =
            b"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\n\x17\0\0\0\x0a\x01x\x12\x12\x92\x01\x0f192.0.2.1:30120";
        let (list, _) = fetch_from(fivem.to_vec(), HttpLimits::default()).await;
        assert_eq!(list.map(|list| list.servers.into_values().collect()), Ok(vec!["fivem"]));
    }

    #[tokio::test]
    async fn failure_names_its_cause_without_the_query_of_the_url() {
        let limits = HttpLimits { bytes_max: LIST.len() - 1, ..HttpLimits::default() };
        let cut = &LIST[..LIST.len() / 2];
        for (response, limits, want) in [
            (response("404 Not Found", ""), HttpLimits::default(), "responded with status 404 Not Found"),
            (response("204 No Content", ""), HttpLimits::default(), "responded with status 204 No Content"),
            (response("200 OK", LIST), limits, "has more than 70 bytes"),
            (response("200 OK", cut), HttpLimits::default(), "not a server list: EOF while parsing"),
            (response("200 OK", "<html>"), HttpLimits::default(), "not a server list: expected"),
            (response("200 OK", ""), HttpLimits::default(), "the document is empty"),
            (response("302 Found\r\nLocation: ftp://h/?key=SECRET", ""), HttpLimits::default(), "redirect"),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_vec(),
                HttpLimits::default(),
                "not be received completely",
            ),
            (b"SSH-2.0-nothing\r\n".to_vec(), HttpLimits::default(), "the request failed"),
        ] {
            let (list, _) = fetch_from(response, limits).await;
            let error = list.expect_err(want);
            assert!(error.contains(want), "{want}: {error}");
        }
        assert_eq!(LIST.len() - 1, 70);
    }

    #[tokio::test]
    async fn silent_website_is_a_timeout() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url: HttpUrl = format!("http://{}/?key=SECRET", listener.local_addr().unwrap()).parse().unwrap();
        let limits = HttpLimits { total: Duration::from_millis(200), ..HttpLimits::default() };
        let error = anyhow::Error::new(fetch(&url, "clqd", limits).await.expect_err("no response"));
        let error = format!("{error:#}");
        assert!(error.contains("timeout") && !error.contains("SECRET"), "{error}");
    }

    #[test]
    fn query_of_a_url_is_not_printed() {
        let url: HttpUrl = "https://api.example/v1/?key=SECRET&limit=9#SECRET".parse().unwrap();
        assert_eq!((url.to_string().as_str(), url.is_https), ("https://api.example/v1/", true));
        assert_eq!(format!("{url:?}"), "\"https://api.example/v1/\"");
        assert_eq!(url.into_secret_text(), "https://api.example/v1/?key=SECRET&limit=9#SECRET");
        for (text, want) in [
            ("https://h/a b?key=SECRET", "\"https://h/a b\": not a valid URL"),
            ("https://?key=SECRET", "not a valid URL"),
            ("ftp://h/?key=SECRET", "expected http://HOST/PATH"),
            ("https://user:SECRET@h/", "\"https://h/\": user names"),
        ] {
            let error = text.parse::<HttpUrl>().expect_err(text).to_string();
            assert!(error.contains(want) && !error.contains("SECRET"), "{error}");
        }
    }

    #[test]
    fn user_agent_has_version_and_contact() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(user_agent(""), format!("clqd/{version}"));
        assert_eq!(user_agent("a@b (Zoë)\n"), format!("clqd/{version} (a@b  Zo)"));
    }
}

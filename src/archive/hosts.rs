//! The hosts of `archive.url`: `mysql://user@db1:3306,db2,[2001:db8::3]:3307/database`.
//!
//! The driver accepts only URLs with one host. So each host gets the options of a URL with this
//! host alone.

use std::fmt;
use std::net::Ipv6Addr;

use mysql_async::{Opts, OptsBuilder};

use super::error::SettingsError;

/// The port of a host without one.
const DEFAULT_PORT: u16 = 3306;

/// A host of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// A name or an address, IPv6 without brackets.
    name: String,
    port: u16,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

/// A parsed `archive.url`.
#[derive(Clone, Debug)]
pub(super) struct ArchiveUrl {
    /// At least one, none of them twice.
    hosts: Vec<Host>,
    /// The options of the first host.
    opts: Opts,
}

impl ArchiveUrl {
    pub fn parse(url: &str) -> Result<ArchiveUrl, SettingsError> {
        let Some(Split { before, hosts, after }) = Split::of(url) else {
            return Err(SettingsError::Url("it does not begin with mysql://".into()));
        };
        let count = hosts.split(',').count();
        let mut parsed: Vec<Host> = Vec::with_capacity(count);
        for (number, text) in (1..).zip(hosts.split(',')) {
            let host = parse_host(text).map_err(|why| match count {
                1 => SettingsError::Url(why),
                _ => SettingsError::Url(format!("host {number} of {count}: {why}")),
            })?;
            if parsed.contains(&host) {
                return Err(SettingsError::Url(format!("{host} is in the list twice")));
            }
            parsed.push(host);
        }
        // The driver checks the rest. The host in its URL is replaced below.
        let opts = Opts::from_url(&format!("{before}localhost{after}"))
            .map_err(|error| SettingsError::Url(error.to_string()))?;
        let options = after.split_once('?').map_or("", |(_, options)| options);
        if ["require_ssl", "verify_ca", "verify_identity"].iter().any(|it| options.contains(it)) {
            return Err(SettingsError::Url("TLS is not a part of the URL: set archive.tls".into()));
        }
        if opts.db_name().is_none() {
            return Err(SettingsError::NoDatabase);
        }
        if opts.socket().is_some() && parsed.len() > 1 {
            return Err(SettingsError::Url("a Unix socket (?socket=) cannot be combined with several hosts".into()));
        }
        let opts = options_of(&opts, &parsed[0]);
        Ok(ArchiveUrl { hosts: parsed, opts })
    }

    /// The options of the first host.
    pub fn opts(&self) -> &Opts {
        &self.opts
    }

    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// `user@host:port,host:port/database`, without the password.
    pub fn target(&self) -> String {
        let hosts: Vec<String> = self.hosts.iter().map(Host::to_string).collect();
        self.target_at(&hosts.join(","))
    }

    /// As `target`, for one host.
    pub fn target_of(&self, index: usize) -> String {
        self.target_at(&self.hosts[index].to_string())
    }

    pub fn host(&self, index: usize) -> &Host {
        &self.hosts[index]
    }

    /// `opts` with the address of a host.
    pub fn at_host(&self, opts: &Opts, index: usize) -> Opts {
        options_of(opts, &self.hosts[index])
    }

    fn target_at(&self, hosts: &str) -> String {
        let address = self.opts.socket().unwrap_or(hosts);
        format!("{}@{address}/{}", self.opts.user().unwrap_or(""), self.opts.db_name().unwrap_or(""))
    }
}

fn options_of(opts: &Opts, host: &Host) -> Opts {
    OptsBuilder::from_opts(opts.clone()).ip_or_hostname(&host.name).tcp_port(host.port).into()
}

/// A URL in three parts. `before` ends with the `@` after user and password, `after` begins
/// with the `/` of the database.
struct Split<'u> {
    before: &'u str,
    hosts: &'u str,
    after: &'u str,
}

impl Split<'_> {
    /// `None`: the scheme is another one.
    fn of(url: &str) -> Option<Split<'_>> {
        let scheme = "mysql://";
        let rest = url.strip_prefix(scheme)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let start = rest[..end].rfind('@').map_or(0, |at| at + 1);
        let (before, hosts) = (&url[..scheme.len() + start], &rest[start..end]);
        Some(Split { before, hosts, after: &rest[end..] })
    }
}

fn parse_host(text: &str) -> Result<Host, String> {
    if text.is_empty() {
        return Err("it is empty".into());
    }
    let (name, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or_else(|| format!("{text:?} has no closing bracket"))?;
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(format!("{address:?} is not an IPv6 address"));
            }
            match port.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None if port.is_empty() => (address, None),
                None => return Err(format!("{text:?} has {port:?} after the bracket; a port begins with a colon")),
            }
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(format!("{text:?} has several colons; write an IPv6 address in brackets, such as [::1]"));
            }
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        },
    };
    if name.is_empty() {
        return Err(format!("{text:?} has no name before the port"));
    }
    let is_known = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if let Some(unknown) = name.chars().find(|&c| !is_known(c)) {
        return Err(format!("{name:?} contains {unknown:?}"));
    }
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse::<u16>() {
            Ok(number @ 1..) if !port.starts_with('+') => number,
            _ => return Err(format!("the port {port:?} of {name:?} is not a number from 1 to 65535")),
        },
    };
    Ok(Host { name: name.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_of_hosts_is_parsed() {
        for (url, hosts) in [
            ("mysql://u@h/d", "h:3306"),
            ("mysql://h:1/d", "h:1"),
            ("mysql://u:p@a:3306,b:3307,c/d?prefer_socket=false", "a:3306,b:3307,c:3306"),
            ("mysql://u@127.0.0.1,[::1],[2001:db8::3]:3307/d", "127.0.0.1:3306,[::1]:3306,[2001:db8::3]:3307"),
            ("mysql://u:a,b%40c@db-1.example.org,db_2/d", "db-1.example.org:3306,db_2:3306"),
        ] {
            let parsed = ArchiveUrl::parse(url).unwrap();
            let found: Vec<String> = (0..parsed.host_count()).map(|index| parsed.host(index).to_string()).collect();
            assert_eq!(found.join(","), hosts, "{url}");
        }
    }

    #[test]
    fn every_host_gets_the_options_of_the_url() {
        let url = ArchiveUrl::parse("mysql://u:a,b%40c@a,[::1]:3307/d?prefer_socket=false").unwrap();
        for (index, host, port) in [(0, "a", 3306), (1, "::1", 3307)] {
            let opts = url.at_host(url.opts(), index);
            assert_eq!((opts.ip_or_hostname(), opts.tcp_port()), (host, port));
            assert_eq!((opts.user(), opts.pass(), opts.db_name()), (Some("u"), Some("a,b@c"), Some("d")));
            assert!(!opts.prefer_socket());
        }
        assert_eq!(url.target(), "u@a:3306,[::1]:3307/d");
        assert_eq!(url.target_of(1), "u@[::1]:3307/d");
    }

    #[test]
    fn error_names_the_bad_part() {
        for (url, words) in [
            ("postgres://h/d", ["mysql://", ""]),
            ("mysql://u@/d", ["it is empty", ""]),
            ("mysql://u@a,,c/d", ["host 2 of 3", "it is empty"]),
            ("mysql://u@a,b:/d", ["host 2 of 2", "the port \"\" of \"b\""]),
            ("mysql://u@a:0/d", ["the port \"0\" of \"a\"", ""]),
            ("mysql://u@a:+1/d", ["\"+1\"", ""]),
            ("mysql://u@a,b:65536/d", ["host 2 of 2", "\"65536\""]),
            ("mysql://u@a,:1/d", ["host 2 of 2", "no name"]),
            ("mysql://u@a, b/d", ["host 2 of 2", "\" b\" contains ' '"]),
            ("mysql://u@a,::1/d", ["host 2 of 2", "brackets"]),
            ("mysql://u@a,[::1/d", ["host 2 of 2", "closing bracket"]),
            ("mysql://u@[::x]/d", ["\"::x\"", "IPv6"]),
            ("mysql://u@[::1]3306/d", ["\"3306\"", "colon"]),
            ("mysql://u@a,b,a:3306/d", ["a:3306", "twice"]),
            ("mysql://u@a,b", ["names no database", ""]),
            ("mysql://u@a,b/d?nonsense=1", ["nonsense", ""]),
            ("mysql://u@a,b/d?socket=/s", ["socket", "several hosts"]),
            ("mysql://u@a/d?require_ssl=true", ["archive.tls", ""]),
        ] {
            let message = ArchiveUrl::parse(url).unwrap_err().to_string();
            assert!(message.contains("archive.url"), "{url}: {message}");
            assert!(words.iter().all(|word| message.contains(word)), "{url}: {message}");
        }
    }
}

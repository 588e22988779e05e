//! Clients of the API that others generate from its description: openapi-python-client makes one in
//! Python, openapi-typescript types for TypeScript. `client.py` and `client.ts` use them. Schemathesis
//! compares the API with its description.
//!
//! The generators come from the package registries of Python and Node.js, so this is ignored by
//! default: run `bash tests/run --clients`, which gets them.

#[path = "../support/http.rs"]
mod http;
#[path = "../support/sandbox.rs"]
mod sandbox;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use clqd::fleet::FaultShares;
use sandbox::{Sandbox, WEB_WITHOUT_RATE_LIMIT, fleet, wait_until};

/// The compiler is strict: what may be missing must be checked.
const TSCONFIG: &str = r#"{"compilerOptions": {
    "target": "es2022", "module": "nodenext", "types": ["node"], "outDir": "out", "skipLibCheck": false,
    "strict": true, "noUncheckedIndexedAccess": true
}, "files": ["client.ts"]}"#;

const SERVERS: u32 = 7;

/// A daemon with data, its generated clients, and their programs.
struct Clients {
    /// `venv` and `node_modules`, where the generators are.
    tools: PathBuf,
    /// Where clients are generated: below `tools`, so that Node.js finds its packages.
    work: PathBuf,
    /// The address of the site, the URL of a server, and a game with a board.
    arguments: [String; 3],
}

impl Clients {
    /// Runs a program in the working directory and returns its output.
    #[track_caller]
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let program = self.tools.join(program);
        // The generator formats its code with a program beside it.
        let path = format!("{}:{}", self.tools.join("venv/bin").display(), std::env::var("PATH").expect("PATH"));
        let mut command = Command::new(&program);
        let output = command.args(arguments).current_dir(&self.work).env("NO_COLOR", "1").env("PATH", path).output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(output.status.success(), "{} {arguments:?}: {}\n{text}", program.display(), output.status);
        text
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.work.join(name), content).expect("a file of the clients");
    }

    /// Schemathesis sends what the description allows and what it forbids, with all of its default checks.
    /// A stream of `/api/v1/live` ends only with its connection.
    fn check_description(&self) {
        let description = format!("{}/api/v1/openapi.json", self.arguments[0]);
        let options = ["--exclude-path", "/api/v1/live", "--seed", "1", "--max-examples", "100", "--no-color"];
        self.run("venv/bin/schemathesis", &[&["run", &description], &options[..]].concat());
    }

    fn check_python(&self) {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/client.py");
        let generate = ["generate", "--path", "openapi.json", "--output-path", "python", "--fail-on-warning"];
        self.run("venv/bin/openapi-python-client", &generate);
        let [site, url, game] = self.arguments.each_ref().map(String::as_str);
        self.write("python/client.py", fs::read(source).expect("the program"));
        let printed = self.run("venv/bin/python", &["python/client.py", site, url, game]);
        assert!(printed.starts_with(&format!("python: {SERVERS} servers, ")), "{printed}");
    }

    fn check_typescript(&self) {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/client.ts");
        self.run("node_modules/.bin/openapi-typescript", &["openapi.json", "--output", "schema.d.ts"]);
        self.write("client.ts", fs::read(source).expect("the program"));
        self.write("package.json", r#"{"type": "module"}"#);
        self.write("tsconfig.json", TSCONFIG);
        self.run("node_modules/.bin/tsc", &["--project", "."]);
        let [site, url, game] = self.arguments.each_ref().map(String::as_str);
        // An absolute path is not below the tools.
        let printed = self.run("/usr/bin/env", &["node", "out/client.js", site, url, game]);
        assert!(printed.starts_with(&format!("typescript: {SERVERS} servers, ")), "{printed}");
    }
}

#[test]
#[ignore = "it needs generators of clients: bash tests/run --clients"]
fn generated_clients_read_every_answer() {
    let tools = std::env::var_os("CLQD_CLIENT_TOOLS").map(PathBuf::from);
    let tools = tools.expect("CLQD_CLIENT_TOOLS: where the generators are; `bash tests/run --clients` sets it");
    let sandbox = Sandbox::new(WEB_WITHOUT_RATE_LIMIT);
    let daemon = sandbox.start();
    let fleet = fleet(SERVERS, 92, 60.0, FaultShares::NONE);
    sandbox.add_servers(&fleet);
    let site = format!("http://{}", sandbox.status()["daemon"]["web"].as_str().expect("an address"));
    let server = || sandbox.list(&["--online"]).into_iter().find(|server| server["players"] != 0);
    wait_until("every server is seen, and there are points", || {
        let Some(server) = server() else { return false };
        let board = ["board", "page", "--game", server["game"].as_str().expect("a game"), "--ranking", "points"];
        sandbox.list(&["--online"]).len() == SERVERS as usize && sandbox.json(board).len() > 1
    });
    let server = server().expect("a server with players");
    let [url, game] = ["url", "game"].map(|field| server[field].as_str().expect("text").to_owned());

    let work = tools.join("work");
    _ = fs::remove_dir_all(&work);
    fs::create_dir_all(&work).expect("a directory");
    let clients = Clients { tools, work, arguments: [site, url, game] };
    clients.write("openapi.json", description(&clients.arguments[0]));
    clients.check_description();
    clients.check_python();
    clients.check_typescript();
    daemon.stop();
}

/// The description as clients get it.
fn description(site: &str) -> Vec<u8> {
    let answer = http::get(site.trim_start_matches("http://"), "/api/v1/openapi.json");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("content-type"), Some("application/json"));
    answer.body
}

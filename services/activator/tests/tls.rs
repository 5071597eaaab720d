//! A site with TLS: activator, administration, servers and clients, alone and beside plain IIOP.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::Arc;

use spandrel::Orb;
use spandrel::services::implementation_repository::ServerObject;
use spandrel::ssliop::{Plain, Ssliop, pem};
use spandrel_test_support::ChildProcess;
use spandrel_test_support::certificates::{Authority, Identity};
use tempfile::TempDir;

use crate::executable::command;
use crate::fixture::{call_after_kill, starts};

/// An activator whose servers offer TLS alone, with certificates of one authority.
struct Site {
    folder: TempDir,
    process: ChildProcess,
    /// The URL of the repository, as the activator says it.
    url: String,
    authority: Authority,
    identity: Identity,
}

impl Site {
    /// An activator with these endpoints.
    fn start(endpoints: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new("Site CA");
        let identity = authority.issue("127.0.0.1");
        for (name, text) in [("cert.pem", &identity.chain), ("key.pem", &identity.key), ("ca.pem", &authority.pem())] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| folder.path().join(name));
        let [cert, key, ca] = [&cert, &key, &ca].map(|path| path.to_str().unwrap());
        let options = [
            ["-ORBListenEndpoints", "ssliop://127.0.0.1:0"],
            ["-ORBSSLCertificate", cert],
            ["-ORBSSLKey", key],
            ["-ORBSSLCA", ca],
            ["-ORBSSLVerify", "require"],
            ["-ORBSSLPlain", "never"],
        ];
        let bank = crate::server::command_with(folder.path(), "normal", options.as_flattened());
        fs::write(folder.path().join("commands.toml"), format!("[commands.bank]\n{bank}")).unwrap();
        let mut command = command();
        command.arg("--data").arg(folder.path()).args([
            "--kill-grace",
            "200",
            "--cert",
            cert,
            "--key",
            key,
            "--ca",
            ca,
        ]);
        for endpoint in endpoints {
            command.args(["--listen", endpoint]);
        }
        let mut process = ChildProcess::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("ready: ImplRepoService ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { folder, process, url, authority, identity }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// A subcommand with the certificates of the site.
    fn run(&self, server: &str, words: &[&str]) -> Output {
        let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| self.file(name));
        let tls = ["--server", server, "--cert", &cert, "--key", &key, "--ca", &ca];
        command().args(words).args(tls).output().unwrap()
    }

    /// The output of a subcommand that succeeds.
    #[track_caller]
    fn ok(&self, server: &str, words: &[&str]) -> String {
        let output = self.run(server, words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A client that calls nothing without TLS.
    fn client(&self) -> Orb {
        let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()))
            .trust(pem::authorities(self.authority.pem().as_bytes()).unwrap())
            .identity(
                pem::certificates(self.identity.chain.as_bytes()).unwrap(),
                pem::private_key(self.identity.key.as_bytes()).unwrap(),
            )
            .plain(Plain::Never);
        Orb::builder().protocol(ssliop).build().unwrap()
    }

    /// The object of the server, by the persistent reference that the server has made.
    fn object(&self) -> ServerObject {
        let reference = fs::read_to_string(self.folder.path().join("reference")).unwrap();
        ServerObject::unchecked_narrow(&self.client().string_to_object(&reference).unwrap())
    }

    fn first_server(&self) -> u32 {
        starts(Path::new(self.folder.path()))[0].1
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let url = self.url.clone();
        for words in [["disable", "bank"], ["stop", "bank"]] {
            _ = self.run(&url, &words);
        }
        _ = self.process.kill();
    }
}

/// The port for TLS in a reference.
fn tls_port(orb: &Orb, url: &str) -> u16 {
    use spandrel::net::transport::Protocol as _;
    let ior = orb.string_to_object(url).unwrap().ior().clone();
    let profile = spandrel::types::IiopProfile::decode(&ior.profiles[0]).unwrap().unwrap();
    let ssliop = Ssliop::new(Arc::new(rustls::crypto::ring::default_provider()));
    ssliop.addresses(&profile)[0].host_and_port().unwrap().1
}

#[test]
fn the_activator_is_that_of_the_initial_reference() {
    let running = Site::start(&["ssliop://127.0.0.1:0"]);
    let [cert, key, ca] = ["cert.pem", "key.pem", "ca.pem"].map(|name| running.file(name));
    let reference = format!("-ORBInitRef ImplRepoService={}", running.url);
    let run = |words: &[&str]| {
        let tls = ["--cert", &cert, "--key", &key, "--ca", &ca, "--orb", &reference];
        command().env_remove("SPANDREL_ACTIVATOR").args(words).args(tls).output().unwrap()
    };
    let output = run(&["list"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = run(&["list", "--server", "127.0.0.1:1"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("by the activator at 127.0.0.1:1:"), "--server has precedence: {text}");
}

#[test]
fn a_site_with_tls_alone_is_administered_and_starts_servers() {
    let site = Site::start(&["ssliop://127.0.0.1:0"]);
    let client = site.client();
    let address = format!("127.0.0.1:{}", tls_port(&client, &site.url));
    let file = site.folder.path().join("repository.ior");
    fs::write(&file, &site.url).unwrap();
    let addresses = [
        address.clone(),
        format!("ssliop://{address}"),
        format!("file://{}", file.display()),
        format!("corbaloc:ssliop:{address}/ImplRepoService"),
        site.url.clone(),
    ];
    site.ok(&address, &["add", "bank", "--command", "bank", "--owner", "\u{141}ukasz"]);
    for address in &addresses {
        assert!(site.ok(address, &["show", "bank"]).contains("owner: \u{141}ukasz"));
    }
    site.ok(&address, &["start", "bank"]);
    assert!(site.ok(&address, &["list"]).contains("running"));
    let object = site.object();
    object.ping().unwrap();
    // The next call starts it again, and is forwarded to it.
    call_after_kill(site.first_server(), &object);
    site.object().ping().unwrap();

    // Without certificates, and without TLS, there is no answer.
    for server in [&*format!("ssliop://{address}"), &*format!("iiop://{address}")] {
        let output = command().args(["list", "--server", server]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{server}");
    }
    let output = command().args(["list", "--server", "http://host"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn persistent_references_of_a_mixed_site_offer_tls() {
    let site = Site::start(&["iiop://127.0.0.1:0", "ssliop://127.0.0.1:0"]);
    let address = site.url.strip_prefix("corbaloc::").and_then(|url| url.split('/').next()).unwrap().to_owned();
    let plain = format!("iiop://{address}");
    site.ok(&plain, &["add", "bank", "--command", "bank"]);
    site.ok(&plain, &["start", "bank"]);
    let object = site.object();
    object.ping().unwrap();
    call_after_kill(site.first_server(), &object);
}

#[test]
fn authorities_need_the_certificate_of_the_service() {
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    fs::write(&ca, Authority::new("Site CA").pem()).unwrap();
    let output = command().arg("--data").arg(folder.path()).arg("--ca").arg(&ca).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--ca needs --cert and --key"));
}

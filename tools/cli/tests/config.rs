//! Sites of `spandrel.toml`: where the file is found, what has precedence, and `spandrel config show`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use spandrel::{Endpoint, Orb};
use spandrel_naming::{NamingOptions, NamingService};

use crate::support::{LIMIT, check_code, stderr, stdout};

/// A naming service, and a folder of configuration with a site for it.
struct Site {
    orb: Orb,
    naming: Option<NamingService>,
    folder: tempfile::TempDir,
    url: String,
}

impl Site {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
        let naming = NamingService::start(&orb, NamingOptions::new(folder.path())).unwrap();
        let (host, port) = orb.listen().unwrap().remove(0);
        let url = format!("corbaloc::{host}:{port}/NameService");
        let site = Self { orb, naming: Some(naming), folder, url };
        site.write(&format!(
            "[sites.plant]\n[sites.plant.references]\nNameService = '{}'\n[sites.plant.options]\n\
             -ORBRequestTimeout = 20000\n-ORBMetrics = true\n[sites.bench]\n",
            site.url
        ));
        site
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("spandrel").join("spandrel.toml")
    }

    fn write(&self, text: &str) {
        fs::create_dir_all(self.file().parent().unwrap()).unwrap();
        fs::write(self.file(), text).unwrap();
    }

    /// Runs a command with this folder of configuration and these variables.
    fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = assert_cmd::Command::cargo_bin("spandrel").unwrap();
        command.env_remove("SPANDREL_SITE").env_remove("SPANDREL_CONFIG").env("XDG_CONFIG_HOME", self.folder.path());
        command.envs(variables.iter().copied()).args(words).timeout(LIMIT).output().unwrap()
    }

    #[track_caller]
    fn ok(&self, words: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self.run(words, variables);
        check_code(&output, 0);
        stdout(&output)
    }

    /// Checks that a command is refused as wrong usage with this text.
    #[track_caller]
    fn refuses(&self, words: &[&str], text: &str) {
        let output = self.run(words, &[]);
        check_code(&output, 2);
        assert!(stderr(&output).contains(text), "{}", stderr(&output));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.naming.take().map(NamingService::stop);
        _ = self.orb.shutdown();
    }
}

#[test]
fn a_site_is_found_by_options_the_environment_and_the_folder_of_configuration() {
    let site = Site::start();
    let other = site.folder.path().join("other.toml");
    fs::copy(site.file(), &other).unwrap();
    let other = other.to_str().unwrap();
    site.ok(&["--site", "plant", "bind", "--context", "bank"], &[]);
    for (words, variables) in [
        (&["list", "--site", "plant"][..], &[][..]),
        (&["--site=plant", "list"], &[]),
        (&["--config", other, "--site", "plant", "tree"], &[("XDG_CONFIG_HOME", "/nowhere")]),
        (&["list"], &[("SPANDREL_SITE", "plant")]),
        (&["list"], &[("SPANDREL_SITE", "plant"), ("SPANDREL_CONFIG", other), ("XDG_CONFIG_HOME", "/nowhere")]),
        (&["list"], &[("SPANDREL_SITE", "plant"), ("SPANDREL_CONFIG", ""), ("HOME", "/nowhere")]),
        (&["list", "--site", "plant"], &[("SPANDREL_SITE", "bench"), ("SPANDREL_CONFIG", other)]),
    ] {
        assert!(site.ok(words, variables).contains("bank"), "{words:?} {variables:?}");
    }
    assert!(site.ok(&["ping", "--site", "plant", "corbaname:rir:#bank"], &[]).contains("ms"));
    assert!(site.ok(&["ior", "--site", "plant", "corbaloc:rir:/NameService"], &[]).contains("127.0.0.1"));
}

#[test]
fn the_command_line_has_precedence_over_a_site() {
    let site = Site::start();
    let nowhere = "-ORBInitRef NameService=corbaloc::127.0.0.1:1/NameService";
    let output = site.run(&["list", "--site", "plant", "--orb", nowhere], &[]);
    check_code(&output, 1);
    assert!(stderr(&output).contains("127.0.0.1:1"), "{}", stderr(&output));
    let shown = site.ok(&["config", "show", "--site", "plant", "--orb", nowhere, "--all"], &[]);
    let file = site.file().display().to_string();
    assert!(shown.starts_with(&format!("site plant of {file}\n")), "{shown}");
    let replaced = format!("-ORBInitRef         NameService={}  ({file}:3, replaced)", site.url);
    let timeout = format!("-ORBRequestTimeout  20000  ({file}:5)");
    let in_force = "-ORBInitRef         NameService=corbaloc::127.0.0.1:1/NameService  (command line)";
    for line in [&*replaced, &timeout, in_force, "-ORBMaxMessageSize  64 MiB  (default)"] {
        assert!(shown.lines().any(|shown| shown == line), "{line} is not in\n{shown}");
    }
    assert!(!shown.contains("-ORBMetrics  no"), "{shown}");
    let json = site.ok(&["--site", "plant", "config", "show", "--json"], &[]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let metrics = json["settings"].as_array().unwrap().iter().find(|of| of["option"] == "-ORBMetrics").unwrap();
    assert_eq!((&metrics["value"], &metrics["source"]), (&"yes".into(), &format!("{file}:6").into()));
}

#[test]
fn no_file_is_read_unless_a_site_is_named() {
    let site = Site::start();
    let shown = site.ok(&["config", "show"], &[]);
    assert_eq!(shown, format!("no site; {} has plant, bench\n", site.file().display()));
    site.write("this is no TOML");
    // It would be refused if it were read.
    site.ok(&["ior", "corbaloc::127.0.0.1:1/Key"], &[]);
    site.refuses(&["ping", "--site", "plant", "corbaloc::127.0.0.1:1/Key"], "spandrel.toml:1:6: ");
    let empty = tempfile::tempdir().unwrap();
    let shown = site.ok(&["config", "show"], &[("XDG_CONFIG_HOME", empty.path().to_str().unwrap())]);
    assert!(shown.starts_with("no site; none is in "), "{shown}");
}

#[test]
fn errors_of_a_site_have_the_file_the_line_and_a_remedy() {
    let site = Site::start();
    site.refuses(&["list", "--site", "plan"], "it has no site `plan`: did you mean `plant`?");
    site.refuses(&["list", "--config", "plant.toml"], "--config plant.toml needs --site NAME, or $SPANDREL_SITE");
    site.refuses(&["list", "--config", "/nowhere/a.toml", "--site", "a"], "cannot use /nowhere/a.toml: No such file");
    site.refuses(&["list", "--orb", "-ORBSite plant"], "--site NAME names a site");
    site.write("[sites.plant]\ncertt = 'a'\n");
    site.refuses(
        &["config", "show", "--site", "plant"],
        "spandrel.toml:2:1: unknown key `certt`: did you mean `cert`?",
    );
    site.write("[sites.plant]\n\n[sites.plant.options]\n-ORBRequestTimeout = 'soon'\n");
    let place = "spandrel.toml:4:22: `-ORBRequestTimeout` cannot be set";
    site.refuses(&["config", "show", "--site", "plant"], place);
    site.refuses(&["list", "--site", "plant"], place);
    site.write("[sites.plant]\nca = 'absent.pem'\n");
    let absent = Path::new(site.file().parent().unwrap()).join("absent.pem").display().to_string();
    site.refuses(&["list", "--site", "plant"], &format!("spandrel.toml:2:6: cannot read {absent}: No such file"));
}

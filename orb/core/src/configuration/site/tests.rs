//! Tests of files of sites: each error has its place, and hostile files are refused in bounded time.

use std::{fs, path::Path};

use super::{MAX_OCTETS, Site, SiteError, text};
use crate::Orb;

const PLANT: &str = r#"
[sites.plant]
ca = "authority.pem"
cert = "/etc/plant.pem"
policy = "rules/policy.toml"

[sites.plant.references]
NameService = "corbaloc::names:2809/NameService"

[sites.plant.options]
-ORBRequestTimeout = 5_000
-ORBMetrics = true
-ORBFragmentSize = ["off", "peer:1=4096"]
-ORBProfile = "small"

[sites.bench]
"#;

fn parse(text: &str) -> Result<Vec<Site>, SiteError> {
    text::parse(text, Path::new("/home/ada/spandrel.toml"))
}

#[track_caller]
fn refused(text: &str, position: (usize, usize), reason: &str) {
    let error = parse(text).unwrap_err();
    assert_eq!((error.position(), error.reason.as_str()), (Some(position), reason));
}

#[test]
fn a_site_has_options_in_the_order_in_which_they_are_set() {
    let sites = parse(PLANT).unwrap();
    let [plant, bench] = &sites[..] else { panic!("{sites:?}") };
    let settings: Vec<_> =
        plant.settings().iter().map(|setting| (&*setting.option, &*setting.value, setting.line)).collect();
    let expected = [
        ("-ORBProfile", "small", 14),
        ("-ORBSSLCA", "/home/ada/authority.pem", 3),
        ("-ORBSSLCertificate", "/etc/plant.pem", 4),
        ("-ORBInitRef", "NameService=corbaloc::names:2809/NameService", 8),
        ("-ORBRequestTimeout", "5000", 11),
        ("-ORBMetrics", "yes", 12),
        ("-ORBFragmentSize", "off", 13),
        ("-ORBFragmentSize", "peer:1=4096", 13),
    ];
    assert_eq!(settings, expected);
    assert_eq!(plant.policy().unwrap().value, "/home/ada/rules/policy.toml");
    assert_eq!((bench.name(), bench.settings(), bench.audit()), ("bench", &[][..], None));
}

#[test]
fn errors_have_the_place_and_a_remedy() {
    refused("site = 3", (1, 1), "unknown key `site`: did you mean `sites`?");
    refused("[sites.a]\ncertt = 'a'", (2, 1), "unknown key `certt`: did you mean `cert`?");
    let keys = "expected `ca`, `cert`, `key`, `policy`, `audit`, `references`, `options`";
    refused("[sites.a]\n  zebra = 'a'", (2, 3), &format!("unknown key `zebra`: {keys}"));
    refused("[sites.a]\nca = 3", (2, 6), "expected the path of a file, as a text");
    refused("[sites.a.references]\nä = ''", (2, 1), "invalid unquoted key, expected letters, numbers, `-`, `_`");
    refused("[sites.a.references]\n'ä' = ''", (2, 7), "expected a URL, as a text");
    refused(
        "[sites.a.options]\nRequestTimeout = 5",
        (2, 1),
        "`RequestTimeout` is not an ORB option: did you mean `-ORBRequestTimeout`?",
    );
    let number = "expected a text, a whole decimal number, a boolean, or a list of these for `-ORBRequestTimeout`";
    refused("[sites.a.options]\n-ORBRequestTimeout = 5.0", (2, 22), number);
    let files = "`-ORBSSLKey` is not one of the options of a site: its key `key` names the file";
    refused("[sites.a.options]\n-ORBSSLKey = 'key.pem'", (2, 1), files);
    refused("sites = 3", (1, 9), "expected a table for each site, such as [sites.plant]");
    let shown = parse("[sites.a]\ncertt = 'a'").unwrap_err().to_string();
    assert_eq!(shown, "cannot use /home/ada/spandrel.toml:2:1: unknown key `certt`: did you mean `cert`?");
}

#[test]
fn an_option_without_such_a_value_is_an_error_of_its_line() {
    let sites = parse("[sites.a.options]\n-ORBRequestTimeout = 'soon'").unwrap();
    let error = Orb::builder().site(&sites[0]).unwrap_err();
    assert_eq!(error.position(), Some((2, 22)));
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "invalid value `soon` for `-ORBRequestTimeout`: expected milliseconds");
}

#[test]
fn later_settings_and_a_command_line_replace_those_of_a_site() {
    let folder = tempfile();
    let file = folder.join("spandrel.toml");
    fs::write(&file, "[sites.a.options]\n-ORBId = 'site'\n-ORBServerId = 'site'\n").unwrap();
    let site = Site::read(&file, "a").unwrap();
    let builder = Orb::builder().orb_id("program").site(&site).unwrap().server_id("program");
    assert_eq!((&*builder.settings.orb_id, &*builder.settings.server_id), ("site", "program"));
    let named = format!("{}#a", file.display());
    let mut args = ["-ORBId", "command", "-ORBSite", &named].map(str::to_owned).to_vec();
    let builder = Orb::builder().take_args(&mut args).unwrap();
    assert_eq!((&*builder.settings.orb_id, &*builder.settings.server_id), ("command", "site"));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn files_that_cannot_be_trusted_are_refused() {
    let folder = tempfile();
    let file = folder.join("spandrel.toml");
    let refuses = |reason: &str| {
        let error = Site::read(&file, "a").unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    };
    refuses("No such file or directory");
    fs::create_dir(&file).unwrap();
    refuses("it is no regular file");
    fs::remove_dir(&file).unwrap();
    fs::write(&file, "#".repeat(MAX_OCTETS as usize + 1)).unwrap();
    refuses("it has more than a mebibyte");
    fs::write(&file, [0xff]).unwrap();
    refuses("it is no UTF-8");
    fs::write(&file, "[sites.bench]\n[sites.plant]").unwrap();
    refuses("it has no site `a`: its sites are `bench`, `plant`");
    fs::write(&file, (0..11).map(|n| format!("[sites.plant{n}]\n")).collect::<String>()).unwrap();
    refuses("`plant7` and 3 more");
    fs::write(&file, "").unwrap();
    refuses("it has no site `a`: it has none");
    fs::write(&file, "[sites.b]").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o646)).unwrap();
        refuses("all users may write it (mode 646): chmod go-w");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
        refuses("its group may write it (mode 660): chmod go-w");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn hostile_texts_end_soon() {
    let begun = std::time::Instant::now();
    let nested = format!("a = {}", "[".repeat(MAX_OCTETS as usize / 2));
    let many = format!("[sites.a.options]\n{}", (0..40_000).map(|n| format!("-ORB{n} = {n}\n")).collect::<String>());
    let dotted = format!("{} = 1", vec!["a"; 100_000].join("."));
    assert!(parse(&nested).is_err() && parse(&dotted).is_err());
    assert_eq!(parse(&many).unwrap()[0].settings().len(), 40_000);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

/// A new folder below that of temporary files.
fn tempfile() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let nth = NEXT.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("spandrel-site-test-{}-{nth}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

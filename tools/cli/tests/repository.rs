//! `spandrel idl --to-repository` and `--from-repository`, and `spandrel call` without IDL.

use spandrel::{Endpoint, Orb};
use spandrel_naming::{NamingOptions, NamingService};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};

use crate::support::bank::Bank;
use crate::support::{check_code, spandrel, stderr, stdout};

#[test]
fn a_repository_is_filled_printed_and_used_by_calls() {
    let folder = tempfile::tempdir().expect("a folder");
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().expect("an ORB");
    let repository = InterfaceRepository::start(&orb, RepositoryOptions::new(folder.path())).expect("a repository");
    let url = repository.reference().to_string();
    let bank = Bank::open();
    let file = bank.file.to_str().expect("a path");

    let to = format!("--to-repository={url}");
    let filled = spandrel(&["idl", &to, file]);
    check_code(&filled, 0);
    assert!(stdout(&filled).starts_with("+ ::Bank\n"), "{}", stdout(&filled));
    let again = spandrel(&["idl", &to, file]);
    check_code(&again, 0);
    assert!(stdout(&again).contains(": 0 created, 0 replaced, 0 removed, "), "{}", stdout(&again));

    let printed = spandrel(&["idl", &format!("--from-repository={url}")]);
    check_code(&printed, 0);
    let copy = folder.path().join("copy.idl");
    std::fs::write(&copy, stdout(&printed)).expect("a file");
    let compiled = spandrel(&["idl", "--check", copy.to_str().expect("a path")]);
    // It has the warning of the file itself, about a native type.
    assert_eq!(stderr(&compiled).matches("warning").count(), 1, "{}{}", stderr(&compiled), stdout(&printed));
    check_code(&compiled, 0);

    // The call finds operations and types by the reference's id.
    let option = format!("-ORBInitRef InterfaceRepository={url}");
    let call = |words: &[&str]| spandrel(&[&["call", "--orb", &option, &bank.reference], words].concat());
    let called = call(&["deposit", "5", "for rent"]);
    check_code(&called, 0);
    assert_eq!(stdout(&called), "105\nnote: \"FOR RENT\"\nall: [{what: \"for rent\", amount: 5}]\n");
    let listed = call(&[]);
    check_code(&listed, 0);
    assert!(stdout(&listed).contains("deposit("), "{}", stdout(&listed));

    let unknown = spandrel(&["call", &bank.reference, "owner"]);
    check_code(&unknown, 1);
    assert!(stderr(&unknown).contains("cannot find the object's interface: give --idl FILE"), "{}", stderr(&unknown));
    let missing = spandrel(&["idl", &format!("--from-repository={url}"), "None::Such"]);
    check_code(&missing, 1);
    assert!(stderr(&missing).contains("has no definition `None::Such`"), "{}", stderr(&missing));
    repository.stop().expect("the end");
    orb.shutdown().expect("the end");
}

#[test]
fn the_repository_beside_the_naming_service_is_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let orb = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let naming = NamingService::start(&orb, NamingOptions::new(folder.path())).unwrap();
    let bank = Bank::open();
    let file = bank.file.to_str().unwrap();
    let references = [naming.reference().to_string(), {
        let (host, port) = orb.listen().unwrap().remove(0);
        format!("corbaloc::{host}:{port}/NameService")
    }];
    let run = |reference: &str, words: &[&str]| {
        let option = format!("-ORBInitRef NameService={reference}");
        spandrel(&[&words[..1], &["--orb", &option], &words[1..]].concat())
    };
    let without = run(&references[0], &["call", &bank.reference, "owner"]);
    check_code(&without, 1);
    assert!(stderr(&without).contains("and its naming service none beside it"), "{}", stderr(&without));

    let repository = InterfaceRepository::start(&orb, RepositoryOptions::new(folder.path())).unwrap();
    for reference in &references {
        check_code(&run(reference, &["idl", "--to-repository", file]), 0);
        let printed = run(reference, &["idl", "--from-repository", "Bank::Account"]);
        check_code(&printed, 0);
        assert!(stdout(&printed).contains("interface Account"), "{}", stdout(&printed));
        let called = run(reference, &["call", &bank.reference, "owner"]);
        check_code(&called, 0);
        let called = run(reference, &["call", "--interface", "Bank::Account", &bank.reference, "owner"]);
        check_code(&called, 0);
    }
    repository.stop().unwrap();
    naming.stop().unwrap();
    orb.shutdown().unwrap();
}

//! Tests of the language.

use std::fs;

use proptest::prelude::*;

use super::*;

fn one(text: &str) -> DirectiveKind {
    let mut directives = parse(text).unwrap();
    assert_eq!(directives.len(), 1, "{text}");
    directives.remove(0).kind
}

fn dynamic(text: &str) -> Dynamic {
    match one(text) {
        DirectiveKind::Dynamic(dynamic) => dynamic,
        other => panic!("{other:?}"),
    }
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn a_dynamic_directive_has_a_type_a_factory_a_state_and_parameters() {
    let expected = Dynamic {
        name: "Time_Service".into(),
        kind: ServiceKind::ServiceObject,
        location: Location { library: Some("netsvcs".into()), symbol: "_make_Time".into(), is_function: true },
        is_active: true,
        parameters: "-p 10222".into(),
    };
    assert_eq!(dynamic(r#"dynamic Time_Service Service_Object * netsvcs:_make_Time() active "-p 10222""#), expected);
    assert_eq!(dynamic("dynamic Time_Service Service_Object*netsvcs:_make_Time()\n\t'-p 10222'"), expected);
    let inactive = dynamic("dynamic X Service_Object * ./lib/y.so:z inactive");
    assert!(!inactive.is_active && !inactive.location.is_function && inactive.parameters.is_empty());
    assert_eq!(inactive.location.library.as_deref(), Some("./lib/y.so"));
    assert_eq!(dynamic(r"dynamic X Module * C:\svc\y.dll:z()").location.library.as_deref(), Some(r"C:\svc\y.dll"));
    assert_eq!(dynamic("dynamic X STREAM * :make()").location.library, None);
    assert_eq!(dynamic("dynamic X STREAM * %LIB%/y:make()").location.library.as_deref(), Some("%LIB%/y"));
    assert_eq!(dynamic("dynamic X STREAM * \"a dir/y\":make()").location.library.as_deref(), Some("a dir/y"));
}

#[test]
fn the_other_directives_have_a_name() {
    let fixed = |name: &str, parameters: &str| {
        DirectiveKind::Static(Static { name: name.into(), parameters: parameters.into() })
    };
    assert_eq!(one("static ACE_Service_Manager \"-d -p 4911\""), fixed("ACE_Service_Manager", "-d -p 4911"));
    assert_eq!(one("static X # a comment\n"), fixed("X", ""));
    assert_eq!(one("suspend X"), DirectiveKind::Suspend("X".into()));
    assert_eq!(one("resume X"), DirectiveKind::Resume("X".into()));
    assert_eq!(one("remove X"), DirectiveKind::Remove("X".into()));
}

#[test]
fn a_text_ends_at_the_last_quote_of_its_line() {
    let DirectiveKind::Static(found) = one(r#"static X "-a "b c" -d 'e'""#) else { panic!() };
    assert_eq!(found.parameters, r#"-a "b c" -d 'e'"#);
    assert_eq!(arguments_with(&found.parameters, |_| None), ["-a", "b c", "-d", "e"]);
    assert_eq!(parse("static X 'a'\nstatic Y 'b'").unwrap().len(), 2);
    // A tab ends it as the end of the line does.
    let DirectiveKind::Static(found) = one("static X '-a 'b' -c'\t# it isn't the end") else { panic!() };
    assert_eq!(found.parameters, "-a 'b' -c");
    assert_eq!(error("static X '-a\t-b'"), "directive:1:10: the text has no closing ' before the tab in its line");
    assert_eq!(error("static X '-a"), "directive:1:10: the text has no closing ' in its line");
}

#[test]
fn a_stream_has_modules() {
    let text =
        "stream dynamic S STREAM * lib:make() active {\n static A\n dynamic B Module * m:b() \"-x\"\n suspend A\n}";
    let DirectiveKind::Stream(stream) = one(text) else { panic!() };
    assert!(matches!(&stream.head, StreamHead::Dynamic(dynamic) if dynamic.name == "S"));
    assert_eq!(stream.modules.len(), 3);
    assert_eq!(stream.modules[2].kind, DirectiveKind::Suspend("A".into()));
    let DirectiveKind::Stream(stream) = one("stream S { remove A }") else { panic!() };
    assert_eq!(stream.head, StreamHead::Existing("S".into()));
    let DirectiveKind::Stream(stream) = one("stream static S '-a'") else { panic!() };
    assert_eq!(stream.head.name(), "S");
}

#[test]
fn the_xml_form_has_the_same_directives() {
    let xml = r#"<?xml version='1.0'?>
        <!DOCTYPE ACE_Svc_Conf SYSTEM "svcconf.dtd">
        <ACE_Svc_Conf>
          <!-- services -->
          <static id="ACE_Service_Manager" params='-d -p 4911'/>
          <dynamic id="Test" type="Service_Object">
            <initializer path="CCM_App" init="_make_Test" params="-p &quot;3 0&quot;"/>
          </dynamic>
          <dynamic id="Off" type="service_object" status="inactive"><initializer init="make"/></dynamic>
          <suspend id="Test"/><resume id="Test"/><remove id="Test"/>
          <streamdef id="S"><static id="S"/><module><static id="A"/></module></streamdef>
          <stream id="S"><module><remove id="A"/></module></stream>
        </ACE_Svc_Conf>"#;
    let classic = "static ACE_Service_Manager '-d -p 4911'
        dynamic Test Service_Object * CCM_App:_make_Test() '-p \"3 0\"'
        dynamic Off Service_Object * :make() inactive
        suspend Test resume Test remove Test
        stream static S { static A }
        stream S { remove A }";
    let kinds = |text: &str| {
        let mut directives = parse(text).unwrap();
        for directive in &mut directives {
            directive.origin = Origin::default();
            if let DirectiveKind::Stream(stream) = &mut directive.kind {
                stream.modules.iter_mut().for_each(|module| module.origin = Origin::default());
            }
        }
        directives
    };
    assert_eq!(kinds(xml), kinds(classic));
}

#[test]
fn the_xml_form_may_have_comments_and_definitions_before_it() {
    let xml = "<!-- a comment -->\n<!-- another -->\n<?xml version=\"1.0\"?>\n<!DOCTYPE ACE_Svc_Conf PUBLIC 'A' 'b.dtd' [\n\
        <!NOTATION n PUBLIC 'N'> <!ENTITY name 'Service'> <!ENTITY x SYSTEM 'x'> <!ELEMENT E (#PCDATA | F)*>\n\
        <!ATTLIST E a CDATA #REQUIRED> ]>\n<ACE_Svc_Conf>&#65; <remove id=\"&name;&#x61;\"/> <![CDATA[text]]></ACE_Svc_Conf>";
    assert_eq!(one(xml), DirectiveKind::Remove("Servicea".into()));
    assert_eq!(error(&xml.replace("<remove", "<remov")), "directive:7:21: <remov>: no such directive");
}

#[test]
fn errors_name_their_place_and_the_expected_words() {
    assert_eq!(
        error("dynamic X Service_Object lib:make()"),
        "directive:1:26: expected `*` after `Service_Object`, found `lib`"
    );
    assert_eq!(
        error("\n  dynamc X"),
        "directive:2:3: expected a directive (dynamic, static, suspend, resume, remove, stream, include), found `dynamc`"
    );
    assert_eq!(
        error("static ./x"),
        "directive:1:8: expected the name of a service after `static`; `./x` is no name: it has one of / \\ : % . ~ - or begins with a digit"
    );
    assert_eq!(
        error("static active"),
        "directive:1:8: expected the name of a service after `static`; `active` is a keyword"
    );
    assert_eq!(error("static X \"a"), "directive:1:10: the text has no closing \" in its line");
    assert_eq!(
        error("stream S { static A"),
        "directive:1:20: expected `}` after the modules of the stream, found the end of the file"
    );
}

#[test]
fn all_errors_of_a_file_are_reported() {
    let text = "dynamic X Nothing\nstatic Good\nsuspend\nremove 1";
    let lines: Vec<String> = error(text).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].starts_with("directive:4:1: expected the name of a service after `suspend`"), "{lines:?}");
    let xml = "<ACE_Svc_Conf><dynamic id='x'/><static/></ACE_Svc_Conf>";
    assert_eq!(error(xml).lines().count(), 2);
    assert!(error("<ACE_Svc_Conf>").starts_with("directive:1:1: "));
    assert_eq!(error("<x/>"), "directive:1:1: <x>: expected the element ACE_Svc_Conf");
}

#[test]
fn files_include_others_relative_to_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("more")).unwrap();
    fs::write(at("svc.conf"), "static A\ninclude \"more/b.conf\"\nstatic C").unwrap();
    fs::write(at("more/b.conf"), "include b2.conf").unwrap();
    fs::write(at("more/b2.conf"), "static B").unwrap();
    let configuration = read(&at("svc.conf")).unwrap();
    let names: Vec<String> = configuration
        .directives
        .iter()
        .map(|directive| match &directive.kind {
            DirectiveKind::Static(found) => found.name.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(names, ["A", "B", "C"]);
    assert_eq!(configuration.files.len(), 3);
    assert_eq!(configuration.directives[1].origin.to_string(), format!("{}:1:1", at("more").join("b2.conf").display()));

    fs::write(at("more/b2.conf"), "include b.conf").unwrap();
    assert!(read(&at("svc.conf")).unwrap_err().to_string().ends_with("is included more than 16 files deep"));
    fs::write(at("more/b.conf"), "\n include gone.conf").unwrap();
    let text = read(&at("svc.conf")).unwrap_err().to_string();
    assert!(text.contains("b.conf:2:10: cannot read") && text.contains("gone.conf"), "{text}");
}

#[test]
fn arguments_have_quotes_and_variables() {
    let variable = |name: &str| (name == "HOME").then(|| "/home/a b".to_owned());
    let divide = |text: &str| arguments_with(text, variable);
    assert_eq!(divide("  -a\t-b  c "), ["-a", "-b", "c"]);
    assert_eq!(divide("\"\" ''"), ["", ""]);
    assert_eq!(divide("$HOME/x '$HOME' \"${HOME}\" $NONE $"), ["/home/a b/x", "$HOME", "/home/a b", "$NONE", "$"]);
    assert_eq!(divide("-a\"b c\"d"), ["-ab cd"]);
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "[a-zX\"'<>/#{}():* \n\\-\u{e9}]{0,200}") {
        _ = parse(&text);
        _ = arguments(&text);
    }

    #[test]
    fn words_of_the_language_in_any_order_are_read_or_refused(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "dynamic", "static", "suspend", "stream", "Module", "Service_Object", "*", "lib:make()", "X", "\"-p 1\"",
                "{", "}", "active", "include", "\n", ":f()",
            ]),
            0..30,
        )
    ) {
        if let Ok(directives) = parse(&words.join(" ").replace("include", "remove")) {
            prop_assert!(directives.len() <= words.len());
        }
    }
}

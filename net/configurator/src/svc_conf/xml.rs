//! The XML form of `svc.conf` (ACE's `svcconf.dtd`).

use std::borrow::Cow;

use roxmltree::{Document, Node, ParsingOptions};

use super::directive::{
    Directive, DirectiveKind, Dynamic, Location, Origin, Position, ServiceKind, Static, StreamDirective, StreamHead,
};
use super::parser::Entry;
use super::syntax_error::SyntaxError;

/// Whether a file has the XML form.
pub(super) fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

pub(super) fn parse(text: &str) -> Result<Vec<Entry>, Vec<SyntaxError>> {
    let text = &declaration_first(text);
    // Entities are not expanded without a limit by the parser.
    let options = ParsingOptions { allow_dtd: true, nodes_limit: 1 << 20, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        vec![SyntaxError::new(Position { line: at.row, column: at.col }, error.to_string())]
    })?;
    let root = document.root_element();
    if root.tag_name().name() != "ACE_Svc_Conf" {
        return Err(vec![error(root, "expected the element ACE_Svc_Conf")]);
    }
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    for node in root.children().filter(Node::is_element) {
        match top_level(node) {
            Ok(entry) => entries.push(entry),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

/// The text with spaces in place of comments before the XML declaration, which ACE's files have, and XML forbids.
fn declaration_first(text: &str) -> Cow<'_, str> {
    let Some(at) = text.find("<?xml") else { return Cow::Borrowed(text) };
    let mut before = text[..at].trim_start_matches('\u{feff}').trim_start();
    while let Some((_, rest)) = before.strip_prefix("<!--").and_then(|comment| comment.split_once("-->")) {
        before = rest.trim_start();
    }
    if at == 0 || !before.is_empty() {
        return Cow::Borrowed(text);
    }
    // The end of the declaration, so that lines keep their numbers.
    let end = text[at..].find("?>").map_or(at, |length| at + length + 2);
    let blank = text[..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' });
    Cow::Owned(blank.collect::<String>() + &text[end..])
}

fn position(node: Node<'_, '_>) -> Position {
    let at = node.document().text_pos_at(node.range().start);
    Position { line: at.row, column: at.col }
}

fn error(node: Node<'_, '_>, text: &str) -> SyntaxError {
    SyntaxError::new(position(node), format!("<{}>: {text}", node.tag_name().name()))
}

fn attribute(node: Node<'_, '_>, name: &str) -> Result<String, SyntaxError> {
    node.attribute(name).map(str::to_owned).ok_or_else(|| error(node, &format!("the attribute {name} is missing")))
}

fn child<'a, 'i>(node: Node<'a, 'i>, names: &[&str]) -> Result<Node<'a, 'i>, SyntaxError> {
    let element = node.children().find(|child| names.contains(&child.tag_name().name()));
    element.ok_or_else(|| error(node, &format!("the element {} is missing", names.join(" or "))))
}

fn top_level(node: Node<'_, '_>) -> Result<Entry, SyntaxError> {
    let origin = Origin { position: position(node), ..Origin::default() };
    let stream = |head, modules| {
        Entry::Directive(Directive { kind: DirectiveKind::Stream(StreamDirective { head, modules }), origin })
    };
    match node.tag_name().name() {
        "include" => Ok(Entry::Include(attribute(node, "path")?, position(node))),
        "stream" => Ok(stream(StreamHead::Existing(attribute(node, "id")?), modules(node)?)),
        "streamdef" => {
            let definition = child(node, &["dynamic", "static"])?;
            let head = match definition.tag_name().name() {
                "dynamic" => StreamHead::Dynamic(dynamic(definition)?),
                _ => StreamHead::Static(fixed(definition)?),
            };
            Ok(stream(head, modules(node)?))
        }
        _ => directive(node).map(Entry::Directive),
    }
}

fn modules(node: Node<'_, '_>) -> Result<Vec<Directive>, SyntaxError> {
    let lists = node.children().filter(|child| child.has_tag_name("module"));
    lists.flat_map(|list| list.children().filter(Node::is_element)).map(directive).collect()
}

fn directive(node: Node<'_, '_>) -> Result<Directive, SyntaxError> {
    let kind = match node.tag_name().name() {
        "dynamic" => DirectiveKind::Dynamic(dynamic(node)?),
        "static" => DirectiveKind::Static(fixed(node)?),
        "suspend" => DirectiveKind::Suspend(attribute(node, "id")?),
        "resume" => DirectiveKind::Resume(attribute(node, "id")?),
        "remove" => DirectiveKind::Remove(attribute(node, "id")?),
        _ => return Err(error(node, "no such directive")),
    };
    Ok(Directive { kind, origin: Origin { position: position(node), ..Origin::default() } })
}

fn fixed(node: Node<'_, '_>) -> Result<Static, SyntaxError> {
    Ok(Static { name: attribute(node, "id")?, parameters: node.attribute("params").unwrap_or_default().to_owned() })
}

fn dynamic(node: Node<'_, '_>) -> Result<Dynamic, SyntaxError> {
    let kind = match attribute(node, "type")?.to_ascii_lowercase().as_str() {
        "service_object" => ServiceKind::ServiceObject,
        "module" => ServiceKind::Module,
        "stream" => ServiceKind::Stream,
        _ => return Err(error(node, "the attribute type is none of service_object, module, stream")),
    };
    let is_active = match node.attribute("status").unwrap_or("active") {
        "active" => true,
        "inactive" => false,
        _ => return Err(error(node, "the attribute status is neither active nor inactive")),
    };
    let initializer = child(node, &["initializer"])?;
    Ok(Dynamic {
        name: attribute(node, "id")?,
        kind,
        location: Location {
            library: initializer.attribute("path").filter(|path| !path.is_empty()).map(str::to_owned),
            symbol: attribute(initializer, "init")?,
            is_function: true,
        },
        is_active,
        parameters: initializer.attribute("params").unwrap_or_default().to_owned(),
    })
}

//! The bundled stubs of the naming service against a live omniNames.

use spandrel::services::cos_naming::naming_context::{self, NotFoundReason};
use spandrel::services::cos_naming::{
    AlreadyBoundOrCannotProceedOrInvalidNameOrNotFoundError as BindError, BindingType, NameComponent, NamingContextExt,
    naming_context_ext,
};
use spandrel::{ObjectRef, Orb};
use spandrel_interop::names::server::{OmniNames, root_context};

fn component(id: &str, kind: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: kind.to_owned() }
}

struct Names {
    context: NamingContextExt,
    orb: Orb,
    _service: OmniNames,
}

fn names() -> Names {
    let orb = Orb::builder().build().unwrap();
    let (service, port) = OmniNames::start(&orb).unwrap();
    let context = NamingContextExt::narrow(&root_context(&orb, port).unwrap()).unwrap();
    Names { context, orb, _service: service }
}

/// A reference that is bound and not called.
fn object(orb: &Orb, key: &str) -> ObjectRef {
    orb.string_to_object(&format!("corbaloc::127.0.0.1:9/{key}")).unwrap()
}

#[test]
fn names_are_bound_resolved_listed_and_unbound() {
    let Names { context, orb, _service } = &names();
    let (bank, grace) = (component("bank", ""), component("grace", "account"));
    let (first, second) = (object(orb, "first"), object(orb, "second"));

    let inner = context.bind_new_context(std::slice::from_ref(&bank)).unwrap().expect("a context");
    context.bind(&[bank.clone(), grace.clone()], Some(&first)).unwrap();
    let again = context.bind(&[bank.clone(), grace.clone()], Some(&second));
    assert_eq!(again, Err(BindError::AlreadyBound(naming_context::AlreadyBound {})));
    context.rebind(&[bank.clone(), grace.clone()], Some(&second)).unwrap();
    let resolved = context.resolve(&[bank.clone(), grace.clone()]).unwrap().expect("a reference");
    assert!(resolved.is_equivalent(&second) && !resolved.is_equivalent(&first));

    inner.bind(&[component("ada", "account")], Some(&first)).unwrap();
    let (some, rest) = inner.list(1).unwrap();
    let rest = rest.expect("an iterator over the other binding");
    let (has_more, more) = rest.next_n(10).unwrap();
    assert!(has_more && !rest.next_one().unwrap().0);
    rest.destroy().unwrap();
    let mut ids: Vec<&str> = some.iter().chain(&more).map(|it| it.binding_name[0].id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["ada", "grace"]);
    assert!(some.iter().all(|binding| binding.binding_type == BindingType::Nobject));
    let (bindings, rest) = context.list(10).unwrap();
    assert!(bindings.iter().any(|it| it.binding_name == [bank.clone()] && it.binding_type == BindingType::Ncontext));
    assert_eq!(rest, None);

    let full = inner.destroy().unwrap_err();
    assert_eq!((full.to_string(), format!("{full:?}")), ("NotEmpty".to_owned(), "NotEmpty".to_owned()));
    inner.unbind(&[component("ada", "account")]).unwrap();
    inner.unbind(std::slice::from_ref(&grace)).unwrap();
    let missing = context.resolve(&[bank.clone(), grace.clone()]).unwrap_err();
    match &missing {
        naming_context::ResolveError::NotFound(missing) => {
            assert_eq!(missing.why, NotFoundReason::MissingNode);
            assert_eq!(missing.rest_of_name, [grace]);
        }
        other => panic!("{other}"),
    }
    assert!(missing.to_string().starts_with("NotFound: why MissingNode, rest_of_name ["), "{missing}");
    context.unbind(&[bank]).unwrap();
    inner.destroy().unwrap();
}

#[test]
fn contexts_of_the_service_are_bound_like_objects() {
    let Names { context, .. } = &names();
    let own = context.new_context().unwrap().expect("a context");
    let name = [component("own", "")];
    context.bind_context(&name, Some(&own)).unwrap();
    context.rebind_context(&name, Some(&own)).unwrap();
    let resolved = context.resolve(&name).unwrap().expect("a reference");
    assert!(resolved.is_equivalent(own.as_object()));
}

#[test]
fn names_have_a_string_form() {
    let Names { context, orb, .. } = &names();
    let name = [component("a/b", "k.d"), component("c", "")];
    assert_eq!(context.to_string(&name).unwrap(), r"a\/b.k\.d/c");
    assert_eq!(context.to_name(r"a\/b.k\.d/c").unwrap(), name);
    let empty: Result<_, naming_context_ext::ToNameError> = context.to_name("");
    assert_eq!(empty.unwrap_err().to_string(), "InvalidName");

    context.bind(&[component("plain", "text")], Some(&object(orb, "plain"))).unwrap();
    let resolved = context.resolve_str("plain.text").unwrap().expect("a reference");
    assert!(resolved.is_equivalent(&object(orb, "plain")));
    assert_eq!(context.to_url(":host:2809", "plain.text").unwrap(), "corbaname::host:2809#plain.text");
    assert_eq!(context.to_url("", "plain").unwrap_err().to_string(), "InvalidAddress");
}

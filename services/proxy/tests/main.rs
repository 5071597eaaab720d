//! Tests of the HTTP proxy: calls, the catalogue, the document, authentication, limits, hostile clients.

mod authentication;
mod calls;
mod catalogue;
mod document;
mod executable;
mod fixture;
mod hostile;
mod offers;
mod schema;
mod security;

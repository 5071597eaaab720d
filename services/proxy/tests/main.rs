//! Tests of the HTTP proxy: calls, the document, authentication, limits, hostile clients.

mod authentication;
mod calls;
mod document;
mod executable;
mod fixture;
mod hostile;
mod offers;
mod schema;
mod security;

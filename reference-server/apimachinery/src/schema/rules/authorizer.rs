//! The variable `authorizer`, which checks permissions in expressions of admission.
//!
//! An expression names a resource or a path step by step, and then checks a verb:
//! `authorizer.group('apps').resource('deployments').check('create').allowed()`.

use std::sync::Arc;

use cel::common::types::{STRING_TYPE, Type};
use cel::common::value::CowVal;
use cel::objects::Opaque;
use cel::{DeclarationError, Env, ExecutionError, Value as Cel};

use super::library::{Result, argument, give, string};
use crate::object::validation::names;
use crate::resource::ResourceInfo;

/// The cost of a check, as in kube-apiserver.
pub(super) const CHECK_COST: u64 = 350_000;

/// Decides on the permissions of the user of a request, and of service accounts.
pub trait Authorize: std::fmt::Debug + Send + Sync {
    /// Decides whether a user may do a verb.
    fn decide(&self, subject: &Subject, verb: &str, target: &Target) -> Decision;
}

/// The user of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The user of the request.
    Requester,
    /// A service account.
    ServiceAccount {
        /// The namespace of the account.
        namespace: String,
        /// The name of the account.
        name: String,
    },
}

/// The path or the resource of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A non-resource path.
    Path(String),
    /// A resource, its subresource or an object.
    Resource(ResourceInfo),
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The user may do the verb.
    pub allowed: bool,
    /// Why the user may, if a role permits it.
    pub reason: String,
}

/// The variable `authorizer` for one user.
#[derive(Clone, Debug)]
pub(super) struct Authorizer {
    decide: Arc<dyn Authorize>,
    subject: Subject,
}

/// A group, a resource or a path, whose verbs can be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Check<K> {
    authorizer: Authorizer,
    target: Target,
    kind: K,
}

/// Distinguishes the types of checks, as the library needs one name for each.
trait Kind: Clone + std::fmt::Debug + Eq + Send + Sync + 'static {
    const NAME: &'static str;
}

macro_rules! checks {
    ($($kind:ident $name:literal)*) => {
        $(#[derive(Clone, Copy, Debug, PartialEq, Eq)]
        struct $kind;

        impl Kind for $kind {
            const NAME: &'static str = $name;
        })*
    };
}

checks! {
    Group "kubernetes.authorization.GroupCheck"
    Resource "kubernetes.authorization.ResourceCheck"
    Path "kubernetes.authorization.PathCheck"
}

impl PartialEq for Authorizer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.decide, &other.decide) && self.subject == other.subject
    }
}

impl Eq for Authorizer {}

impl Opaque for Authorizer {
    fn runtime_type_name(&self) -> &str {
        AUTHORIZER
    }
}

impl<K: Kind> Opaque for Check<K> {
    fn runtime_type_name(&self) -> &str {
        K::NAME
    }
}

impl Opaque for Decision {
    fn runtime_type_name(&self) -> &str {
        DECISION
    }
}

const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
const DECISION: &str = "kubernetes.authorization.Decision";

/// Returns the values of `authorizer` and of `authorizer.requestResource`.
pub(super) fn values(decide: Arc<dyn Authorize>, request: ResourceInfo) -> (Cel, Cel) {
    let authorizer = Authorizer { decide, subject: Subject::Requester };
    let target = Target::Resource(request);
    let check = Check { authorizer: authorizer.clone(), target, kind: Resource };
    (opaque(authorizer), opaque(check))
}

fn opaque(value: impl Opaque) -> Cel {
    Cel::Opaque(Arc::new(value))
}

fn of<T: Clone + 'static>(arguments: &[CowVal<'_, '_>]) -> Result<T> {
    match argument(arguments, 0)? {
        Cel::Opaque(value) => value.downcast_ref::<T>().cloned(),
        _ => None,
    }
    .ok_or_else(|| failed("the receiver is of another type"))
}

fn failed(why: &str) -> ExecutionError {
    ExecutionError::function_error("authorizer", why)
}

/// Declares the types and their methods.
pub(super) fn declare(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    for name in [AUTHORIZER, Group::NAME, Resource::NAME, Path::NAME, DECISION] {
        env.add_type(Type::new_opaque_type(name))?;
    }
    starts(env)?;
    resources(env)?;
    decisions(env)
}

/// Declares the methods that begin a check.
fn starts(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    let receiver = || Type::new_opaque_type(AUTHORIZER);
    let text = || vec![STRING_TYPE];
    env.add_member_overload("path", "authorizer_path", receiver(), text(), |arguments| {
        let path = required(&arguments, "path")?;
        let authorizer = of::<Authorizer>(&arguments)?;
        give(opaque(Check { authorizer, target: Target::Path(path), kind: Path }))
    })?;
    env.add_member_overload("group", "authorizer_group", receiver(), text(), |arguments| {
        let group = string(&arguments, 1)?.as_ref().clone();
        let target = Target::Resource(ResourceInfo { group, ..ResourceInfo::default() });
        let authorizer = of::<Authorizer>(&arguments)?;
        give(opaque(Check { authorizer, target, kind: Group }))
    })?;
    env.add_member_overload(
        "serviceAccount",
        "authorizer_serviceaccount",
        receiver(),
        vec![STRING_TYPE, STRING_TYPE],
        |arguments| {
            let text = |index| string(&arguments, index).map(|text| text.as_ref().clone());
            let (namespace, name) = (text(1)?, text(2)?);
            if !names::dns_label(&namespace).is_empty() {
                return Err(failed("Invalid service account namespace"));
            }
            if !names::dns_subdomain(&name).is_empty() {
                return Err(failed("Invalid service account name"));
            }
            let authorizer = of::<Authorizer>(&arguments)?;
            let subject = Subject::ServiceAccount { namespace, name };
            give(opaque(Authorizer { subject, ..authorizer }))
        },
    )
}

/// Declares the methods that complete a resource.
fn resources(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    let text = || vec![STRING_TYPE];
    let group = Type::new_opaque_type(Group::NAME);
    env.add_member_overload("resource", "groupcheck_resource", group, text(), |arguments| {
        let resource = required(&arguments, "resource")?;
        let Check { authorizer, target, .. } = of::<Check<Group>>(&arguments)?;
        let target = completed(target, |info| info.resource = resource);
        give(opaque(Check { authorizer, target, kind: Resource }))
    })?;
    let receiver = || Type::new_opaque_type(Resource::NAME);
    let (subresource, field) = ("resourcecheck_subresource", "authorizer_fieldselector");
    env.add_member_overload("subresource", subresource, receiver(), text(), |arguments| {
        set(&arguments, |info, text| info.subresource = text)
    })?;
    env.add_member_overload("namespace", "resourcecheck_namespace", receiver(), text(), |all| {
        set(&all, |info, text| info.namespace = text)
    })?;
    env.add_member_overload("name", "resourcecheck_name", receiver(), text(), |arguments| {
        set(&arguments, |info, text| info.name = text)
    })?;
    // Roles do not depend on selectors.
    env.add_member_overload("fieldSelector", field, receiver(), text(), |arguments| {
        set(&arguments, |_, _| {})
    })?;
    let label = "authorizer_labelselector";
    env.add_member_overload("labelSelector", label, receiver(), text(), |arguments| {
        set(&arguments, |_, _| {})
    })?;
    env.add_member_overload("check", "resourcecheck_check", receiver(), text(), |arguments| {
        give(opaque(of::<Check<Resource>>(&arguments)?.decide(&string(&arguments, 1)?)))
    })?;
    let path = Type::new_opaque_type(Path::NAME);
    env.add_member_overload("check", "pathcheck_check", path, text(), |arguments| {
        give(opaque(of::<Check<Path>>(&arguments)?.decide(&string(&arguments, 1)?)))
    })
}

/// Declares the methods of decisions. A check in this server has no errors.
fn decisions(env: &mut Env) -> std::result::Result<(), DeclarationError> {
    let receiver = || Type::new_opaque_type(DECISION);
    env.add_member_overload("allowed", "decision_allowed", receiver(), vec![], |arguments| {
        give(of::<Decision>(&arguments)?.allowed)
    })?;
    env.add_member_overload("reason", "decision_reason", receiver(), vec![], |arguments| {
        give(of::<Decision>(&arguments)?.reason)
    })?;
    env.add_member_overload("errored", "decision_errored", receiver(), vec![], |arguments| {
        of::<Decision>(&arguments).and_then(|_| give(false))
    })?;
    env.add_member_overload("error", "decision_error", receiver(), vec![], |arguments| {
        of::<Decision>(&arguments).and_then(|_| give(String::new()))
    })
}

impl<K> Check<K> {
    fn decide(&self, verb: &str) -> Decision {
        let Authorizer { decide, subject } = &self.authorizer;
        decide.decide(subject, verb, &self.target)
    }
}

/// Returns the check of a resource after a change with the text of a call.
fn set<'b, 'v>(
    arguments: &[CowVal<'b, 'v>],
    change: impl FnOnce(&mut ResourceInfo, String),
) -> Result<CowVal<'b, 'v>> {
    let text = string(arguments, 1)?.as_ref().clone();
    let mut check = of::<Check<Resource>>(arguments)?;
    check.target = completed(check.target, |info| change(info, text));
    give(opaque(check))
}

fn required(arguments: &[CowVal<'_, '_>], name: &str) -> Result<String> {
    let text = string(arguments, 1)?;
    if text.trim().is_empty() {
        return Err(failed(&format!("{name} must not be empty")));
    }
    Ok(text.as_ref().clone())
}

fn completed(target: Target, change: impl FnOnce(&mut ResourceInfo)) -> Target {
    match target {
        Target::Resource(mut info) => {
            change(&mut info);
            Target::Resource(info)
        }
        path @ Target::Path(_) => path,
    }
}

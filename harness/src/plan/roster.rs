//! The subjects of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubeproof_cases::SubjectDefinition;
use kubeproof_cases::case::{Capability, ResourceName};

use crate::capability::Capabilities;
use crate::run::RunOptions;
use crate::selection::nearest;
use crate::subject::{Origin, Subject, SubjectError};

/// The subjects that a target offers, and those that it lacks.
pub(super) struct Roster<'a> {
    /// Cases that take any subject run on these.
    pub(super) subjects: Vec<Arc<Subject>>,
    /// The standard subjects that are not among them, and why.
    pub(super) absent: Vec<(ResourceName, String)>,
    definitions: &'a [SubjectDefinition],
    capabilities: &'a Capabilities,
    run: &'a str,
    /// Why there are no custom resources.
    no_customs: Option<String>,
    /// Found when cases name them.
    named: BTreeMap<ResourceName, Result<Arc<Subject>, String>>,
}

impl<'a> Roster<'a> {
    pub(super) fn new(
        definitions: &'a [SubjectDefinition],
        capabilities: &'a Capabilities,
        options: &RunOptions,
        run: &'a str,
    ) -> Result<Self, SubjectError> {
        let no_customs = if options.read_only {
            Some("its resource would have to be installed, which --read-only forbids".to_owned())
        } else if options.namespace.is_some() {
            Some("its resource would have to be installed, which --namespace forbids (--subject names one that is there)".to_owned())
        } else {
            capabilities.missing(Capability::Crds)
        };
        let (subjects, absent, named) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut roster = Self { subjects, absent, definitions, capabilities, run, no_customs, named };
        for definition in definitions.iter().filter(|definition| definition.standard) {
            match roster.known(definition) {
                Ok(subject) => roster.subjects.push(subject),
                Err(reason) => roster.absent.push((definition.name.clone(), reason)),
            }
        }
        for argument in &options.subjects {
            let mut subject = roster.users(&argument.name)?;
            if let Some(template) = &argument.template {
                subject.template.clone_from(template);
            }
            roster.subjects.retain(|other| other.name != subject.name);
            roster.absent.retain(|(name, _)| *name != subject.name);
            roster.subjects.push(Arc::new(subject));
        }
        Ok(roster)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }

    pub(super) fn adopt(&mut self, subjects: Vec<Subject>) {
        self.subjects.extend(subjects.into_iter().map(Arc::new));
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &ResourceName> {
        self.subjects.iter().map(|subject| &subject.name).chain(self.named.keys())
    }

    /// A subject that a case names.
    pub(super) fn named(&mut self, name: &ResourceName) -> Result<Arc<Subject>, String> {
        if let Some(subject) = self.subjects.iter().find(|subject| subject.name == *name) {
            return Ok(Arc::clone(subject));
        }
        if let Some(found) = self.named.get(name) {
            return found.clone();
        }
        let found = match self.definitions.iter().find(|definition| definition.name == *name) {
            Some(definition) => self.known(definition),
            None => {
                self.listed(name).map(|listed| Arc::new(Subject::discovered(name, listed, Origin::Named)))
            }
        };
        self.named.insert(name.clone(), found.clone());
        found
    }

    fn known(&self, definition: &SubjectDefinition) -> Result<Arc<Subject>, String> {
        let subject = match (&definition.crd, &self.no_customs) {
            (Some(_), Some(reason)) => return Err(reason.clone()),
            (Some(crd), None) => {
                Subject::custom(definition, crd, &format!("{}.{}", self.run, definition.name.group))
            }
            (None, _) => {
                let origin = if definition.standard { Origin::Standard } else { Origin::Named };
                Subject::standard(definition, self.listed(&definition.name)?, origin)
            }
        };
        Ok(Arc::new(subject))
    }

    fn users(&self, name: &ResourceName) -> Result<Subject, SubjectError> {
        if let Some(definition) = self.definitions.iter().find(|definition| definition.name == *name)
            && let Ok(listed) = self.listed(name)
        {
            return Ok(Subject::standard(definition, listed, Origin::User));
        }
        if let Ok(listed) = self.listed(name) {
            Ok(Subject::discovered(name, listed, Origin::User))
        } else {
            let served: Vec<String> = self.capabilities.resources.keys().map(ToString::to_string).collect();
            let nearest = nearest(&name.to_string(), served.iter().map(String::as_str));
            Err(SubjectError::NotServed { name: name.clone(), nearest })
        }
    }

    fn listed(&self, name: &ResourceName) -> Result<&'a crate::capability::Discovered, String> {
        self.capabilities.resources.get(name).ok_or_else(|| format!("the server does not serve {name}"))
    }
}

//! Resolves the subjects of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubeproof_cases::SubjectDefinition;
use kubeproof_cases::case::{Capability, ResourceName};

use super::RunOptions;
use super::selection::nearest;
use super::subject::{Origin, Subject, SubjectError};
use crate::capability::{Capabilities, Discovered};
use crate::event::SkipReason;

/// The subjects that a target serves, and the subjects that it lacks.
pub(super) struct ResolvedSubjects<'a> {
    /// Subjects for cases that accept any.
    pub(super) subjects: Vec<Arc<Subject>>,
    /// Standard subjects that are missing, with the reason.
    pub(super) absent: Vec<(ResourceName, SkipReason)>,
    definitions: &'a [SubjectDefinition],
    capabilities: &'a Capabilities,
    run: &'a str,
    /// Why custom resources cannot be installed.
    no_custom_resources: Option<SkipReason>,
    /// Subjects that cases name, found on demand.
    named: BTreeMap<ResourceName, Result<Arc<Subject>, SkipReason>>,
}

impl<'a> ResolvedSubjects<'a> {
    pub(super) fn new(
        definitions: &'a [SubjectDefinition],
        capabilities: &'a Capabilities,
        options: &RunOptions,
        run: &'a str,
    ) -> Result<Self, SubjectError> {
        let no_custom_resources = if options.read_only {
            Some(SkipReason::InstallForbidden { option: "--read-only", advice: "" })
        } else if options.namespace.is_some() {
            Some(SkipReason::InstallForbidden {
                option: "--namespace",
                advice: "; use --subject to name an existing one",
            })
        } else {
            capabilities.missing(Capability::Crds)
        };
        let (subjects, absent, named) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut resolved =
            Self { subjects, absent, definitions, capabilities, run, no_custom_resources, named };
        for definition in definitions.iter().filter(|definition| definition.standard) {
            match resolved.known(definition) {
                Ok(subject) => resolved.subjects.push(subject),
                Err(reason) => resolved.absent.push((definition.name.clone(), reason)),
            }
        }
        for argument in &options.subjects {
            let mut subject = resolved.users(&argument.name)?;
            if let Some(template) = &argument.template {
                subject.template.clone_from(template);
            }
            resolved.subjects.retain(|other| other.name != subject.name);
            resolved.absent.retain(|(name, _)| *name != subject.name);
            resolved.subjects.push(Arc::new(subject));
        }
        Ok(resolved)
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

    /// Returns a subject that a case names.
    pub(super) fn named(&mut self, name: &ResourceName) -> Result<Arc<Subject>, SkipReason> {
        if let Some(subject) = self.subjects.iter().find(|subject| subject.name == *name) {
            return Ok(Arc::clone(subject));
        }
        if let Some(found) = self.named.get(name) {
            return found.clone();
        }
        let found = match self.definitions.iter().find(|definition| definition.name == *name) {
            Some(definition) => self.known(definition),
            None => self
                .listed(name)
                .map(|listed| Arc::new(Subject::discovered(name, listed, Origin::Named))),
        };
        self.named.insert(name.clone(), found.clone());
        found
    }

    fn known(&self, definition: &SubjectDefinition) -> Result<Arc<Subject>, SkipReason> {
        let subject = match (&definition.crd, &self.no_custom_resources) {
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
        if let Some(definition) =
            self.definitions.iter().find(|definition| definition.name == *name)
            && let Ok(listed) = self.listed(name)
        {
            return Ok(Subject::standard(definition, listed, Origin::User));
        }
        if let Ok(listed) = self.listed(name) {
            Ok(Subject::discovered(name, listed, Origin::User))
        } else {
            let served: Vec<String> =
                self.capabilities.resources.keys().map(ToString::to_string).collect();
            let nearest = nearest(&name.to_string(), served.iter().map(String::as_str));
            Err(SubjectError::NotServed { name: name.clone(), nearest })
        }
    }

    fn listed(&self, name: &ResourceName) -> Result<&'a Discovered, SkipReason> {
        self.capabilities
            .resources
            .get(name)
            .ok_or_else(|| SkipReason::ResourceNotServed { resource: name.clone() })
    }
}

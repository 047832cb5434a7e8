//! Inference of the types that an expression does not state, such as that of the items of `[]`.
//!
//! Each such type is a variable. The first use of the value binds the variable, and a later use
//! can bind it to a more general type.

use super::types::Type;

/// The types of the variables.
#[derive(Clone, Debug, Default)]
pub(super) struct Inference<'s> {
    bindings: Vec<Option<Type<'s>>>,
    /// The bindings before the changes of an attempt.
    replaced: Vec<(usize, Option<Type<'s>>)>,
}

impl<'s> Inference<'s> {
    /// Returns a new variable.
    pub(super) fn fresh(&mut self) -> Type<'s> {
        self.bindings.push(None);
        Type::Variable(self.bindings.len() - 1)
    }

    /// Replaces all variables that have a type.
    pub(super) fn resolved(&self, ty: &Type<'s>) -> Type<'s> {
        ty.replaced(&|variable| match self.bindings.get(variable) {
            Some(Some(bound)) => self.resolved(bound),
            _ => Type::Variable(variable),
        })
    }

    /// Replaces all variables. Those without a type are dynamic.
    pub(super) fn settled(&self, ty: &Type<'s>) -> Type<'s> {
        ty.replaced(&|variable| match self.bindings.get(variable) {
            Some(Some(bound)) => self.settled(bound),
            _ => Type::Dyn,
        })
    }

    /// Reports whether a value of the type `from` is permitted where `to` is expected.
    pub(super) fn assigns(&mut self, to: &Type<'s>, from: &Type<'s>) -> bool {
        self.attempt(|types| types.accepts(to, from))
    }

    /// Reports whether the arguments of a call fit its parameters.
    pub(super) fn assigns_all(&mut self, to: &[Type<'s>], from: &[Type<'s>]) -> bool {
        to.len() == from.len()
            && self.attempt(|types| to.iter().zip(from).all(|(to, from)| types.accepts(to, from)))
    }

    /// Returns the type of items of two types.
    pub(super) fn joined(&mut self, first: Type<'s>, other: Type<'s>) -> Type<'s> {
        if self.assigns(&first, &other) { most_general(first, other) } else { Type::Dyn }
    }

    /// Discards the new bindings if the types do not fit.
    fn attempt(&mut self, fits: impl FnOnce(&mut Self) -> bool) -> bool {
        self.replaced.clear();
        if fits(self) {
            return true;
        }
        while let Some((variable, before)) = self.replaced.pop() {
            self.bindings[variable] = before;
        }
        false
    }

    fn accepts(&mut self, to: &Type<'s>, from: &Type<'s>) -> bool {
        if let Type::Variable(variable) = from {
            let (fits, was_bound) = self.binds(*variable, to);
            if fits || was_bound {
                return fits;
            }
        }
        match (to, from) {
            (Type::Variable(variable), _) => self.binds(*variable, from).0,
            (Type::Any | Type::Dyn | Type::Error, _)
            | (_, Type::Any | Type::Dyn | Type::Error)
            | (Type::Meta(_), Type::Meta(_)) => true,
            (Type::Null, other) | (other, Type::Null) => other.can_be_null(),
            (Type::List(to), Type::List(from)) | (Type::Optional(to), Type::Optional(from)) => {
                self.accepts(to, from)
            }
            (Type::Map(key, value), Type::Map(from_key, from_value)) => {
                self.accepts(key, from_key) && self.accepts(value, from_value)
            }
            (to, from) => to == from,
        }
    }

    /// Binds a variable to a type. Reports whether it fits, and whether the variable had a type.
    fn binds(&mut self, variable: usize, ty: &Type<'s>) -> (bool, bool) {
        if *ty == Type::Variable(variable) {
            return (true, true);
        }
        let Some(bound) = self.bindings.get(variable).cloned().flatten() else {
            let fits = !self.occurs(variable, ty);
            if fits {
                self.bind(variable, ty.clone());
            }
            return (fits, false);
        };
        if bound == *ty {
            return (true, true);
        }
        if !self.accepts(ty, &bound) {
            return (false, true);
        }
        let general = most_general(ty.clone(), bound);
        if !self.occurs(variable, &general) {
            self.bind(variable, general);
        }
        (true, true)
    }

    fn bind(&mut self, variable: usize, ty: Type<'s>) {
        if let Some(binding) = self.bindings.get_mut(variable) {
            self.replaced.push((variable, binding.replace(ty)));
        }
    }

    /// Reports whether a type contains a variable.
    fn occurs(&self, variable: usize, ty: &Type<'s>) -> bool {
        match ty {
            Type::Variable(other) if *other == variable => true,
            Type::Variable(other) => match self.bindings.get(*other) {
                Some(Some(bound)) => self.occurs(variable, bound),
                _ => false,
            },
            Type::List(inner) | Type::Optional(inner) | Type::Meta(inner) => {
                self.occurs(variable, inner)
            }
            Type::Map(key, value) => self.occurs(variable, key) || self.occurs(variable, value),
            _ => false,
        }
    }
}

fn most_general<'s>(one: Type<'s>, other: Type<'s>) -> Type<'s> {
    if is_as_general(&one, &other) { one } else { other }
}

/// Reports whether all values of the type `other` have the type `one`, too.
fn is_as_general(one: &Type<'_>, other: &Type<'_>) -> bool {
    let is_open = |ty: &Type<'_>| matches!(ty, Type::Dyn | Type::Any | Type::Variable(_));
    match (one, other) {
        (one, _) if is_open(one) => true,
        (_, other) if is_open(other) => false,
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => {
            is_as_general(one, other)
        }
        (Type::Map(key, value), Type::Map(other_key, other)) => {
            is_as_general(key, other_key) && is_as_general(value, other)
        }
        (Type::Meta(_), Type::Meta(_)) => true,
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: Type<'static>) -> Type<'static> {
        Type::List(Box::new(item))
    }

    #[test]
    fn a_use_binds_a_variable() {
        let mut types = Inference::default();
        let item = types.fresh();
        let items = list(item.clone());
        assert!(types.assigns(&list(Type::Int), &items));
        assert_eq!(types.resolved(&item), Type::Int);
        assert!(!types.assigns(&list(Type::String), &items));
        assert!(types.assigns(&list(Type::Dyn), &items));
        assert_eq!(types.resolved(&item), Type::Dyn);
    }

    #[test]
    fn a_failed_attempt_binds_nothing() {
        let mut types = Inference::default();
        let item = types.fresh();
        let parameters = [item.clone(), Type::Int];
        assert!(!types.assigns_all(&parameters, &[Type::Bool, Type::String]));
        assert_eq!(types.resolved(&item), item);
        assert_eq!(types.settled(&item), Type::Dyn);
    }

    #[test]
    fn a_type_does_not_contain_itself() {
        let mut types = Inference::default();
        let item = types.fresh();
        assert!(!types.assigns(&item, &list(item.clone())));
    }

    #[test]
    fn items_of_different_types_are_dynamic() {
        let mut types = Inference::default();
        assert_eq!(types.joined(Type::Int, Type::String), Type::Dyn);
        assert_eq!(types.joined(Type::Int, Type::Dyn), Type::Dyn);
        assert_eq!(types.joined(list(Type::Int), list(Type::Int)), list(Type::Int));
        assert_eq!(types.joined(Type::Duration, Type::Null), Type::Null);
    }
}

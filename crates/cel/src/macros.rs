//! The macros of the reference's environment: comprehensions of one and two variables, `has`, `cel.bind`, `optMap`,
//! `optFlatMap`, `sortBy`.

use crate::{
    ast::{Element, Entry, Expr, ExprKind, Fold, Id},
    parser::{Parser, fold, global},
    value::Value,
};
use std::sync::Arc;

/// No text can name it.
pub(crate) const ACCUMULATOR: &str = "@result";
const OLD_ACCUMULATOR: &str = "__result__";
const UNUSED: &str = "#unused";
const SORT_INPUT: &str = "@__sortBy_input__";

/// `optMap` doubles what it is called on: a chain of them would never end.
const MOST_EXPRESSIONS: usize = 200_000;

/// What is wrong with a macro's arguments, and where.
struct Refused(usize, String);

/// The expansion, or `None` if the call is no macro's.
type Expansion = Result<Option<Expr>, Refused>;

impl Parser<'_, '_> {
    fn too_many(&self) -> bool {
        self.expressions() > MOST_EXPRESSIONS
    }

    pub(crate) fn global_call(&mut self, id: Id, function: &Arc<str>, args: Vec<Expr>) -> Expr {
        if &**function == "has" && args.len() == 1 {
            return match expand_has(self, id, &args[0]) {
                Ok(expr) => expr,
                Err(Refused(offset, message)) => self.report(offset, message),
            };
        }
        global(id, function, args)
    }

    pub(crate) fn receiver_call(&mut self, id: Id, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        if self.too_many() {
            return self.report(
                0,
                format!("expression has more than {MOST_EXPRESSIONS} parts when macros are expanded"),
            );
        }
        let expansion = Expander { parser: self, at: id }.expand(function, &target, &args);
        match expansion {
            Ok(Some(expr)) => expr,
            Ok(None) => {
                let kind = ExprKind::Call { function: function.into(), target: Some(Box::new(target)), args };
                Expr { id, kind }
            }
            Err(Refused(offset, message)) => self.report(offset, message),
        }
    }
}

fn expand_has(parser: &mut Parser<'_, '_>, id: Id, arg: &Expr) -> Result<Expr, Refused> {
    let ExprKind::Select { operand, field, .. } = &arg.kind else {
        return Err(Refused(parser.offset_of(arg.id), "invalid argument to has() macro".into()));
    };
    let kind = ExprKind::Select { operand: operand.clone(), field: field.clone(), test_only: true };
    let offset = parser.offset_of(id);
    Ok(Expr { id: parser.id(offset), kind })
}

/// Makes expressions that stand where the macro is called.
struct Expander<'p, 't, 'i> {
    parser: &'p mut Parser<'t, 'i>,
    at: Id,
}

/// A comprehension's parts but for range and variables.
struct Parts {
    init: Expr,
    condition: Expr,
    step: Expr,
    result: Expr,
}

impl Expander<'_, '_, '_> {
    fn expand(&mut self, function: &str, target: &Expr, args: &[Expr]) -> Expansion {
        match (function, args.len()) {
            ("all" | "exists" | "exists_one", 2) => self.quantifier(function, target, args).map(Some),
            ("map", 2 | 3) | ("filter", 2) => self.map_or_filter(function, target, args).map(Some),
            ("all" | "exists" | "exists_one" | "existsOne", 3) => {
                self.quantifier(function, target, args).map(Some)
            }
            ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
                self.transform(function, target, args).map(Some)
            }
            ("bind", 3) if target.ident().is_some_and(|name| &**name == "cel") => {
                let message = "cel.bind() variable names must be simple identifiers";
                let name = self.name(&args[0], message)?;
                Ok(Some(self.bind(name, args[1].clone(), args[2].clone())))
            }
            ("optMap" | "optFlatMap", 2) => self.optional_map(function, target, args).map(Some),
            ("sortBy", 2) => self.sort_by(target, args).map(Some),
            _ => Ok(None),
        }
    }

    fn id(&mut self) -> Id {
        let offset = self.parser.offset_of(self.at);
        self.parser.id(offset)
    }

    fn made(&mut self, kind: ExprKind) -> Expr {
        Expr { id: self.id(), kind }
    }

    fn literal(&mut self, value: Value) -> Expr {
        self.made(ExprKind::Literal(value))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.made(ExprKind::Ident(name.into()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        let id = self.id();
        global(id, function, args)
    }

    fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        self.made(ExprKind::Call { function: function.into(), target: Some(Box::new(target)), args })
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        let elements = elements.into_iter().map(|expr| Element { expr, optional: false }).collect();
        self.made(ExprKind::List(elements))
    }

    fn refuse(&self, expr: &Expr, message: impl Into<String>) -> Refused {
        Refused(self.parser.offset_of(expr.id), message.into())
    }

    fn name(&self, arg: &Expr, otherwise: &str) -> Result<Arc<str>, Refused> {
        arg.ident().cloned().ok_or_else(|| self.refuse(arg, otherwise))
    }

    fn variable(&self, arg: &Expr, otherwise: &str) -> Result<Arc<str>, Refused> {
        let name = self.name(arg, otherwise)?;
        if &*name == ACCUMULATOR || &*name == OLD_ACCUMULATOR {
            return Err(self.refuse(arg, "iteration variable overwrites accumulator variable"));
        }
        Ok(name)
    }

    fn two_variables(&self, args: &[Expr]) -> Result<(Arc<str>, Arc<str>), Refused> {
        let first = self.name(&args[0], "argument must be a simple name")?;
        let second = self.name(&args[1], "argument must be a simple name")?;
        if first == second {
            return Err(self.refuse(&args[1], format!("duplicate variable name: {first}")));
        }
        self.variable(&args[0], "")?;
        self.variable(&args[1], "")?;
        Ok((first, second))
    }

    fn comprehension(
        &mut self,
        target: &Expr,
        first: Arc<str>,
        second: Option<Arc<str>>,
        parts: Parts,
    ) -> Expr {
        let Parts { init, condition, step, result } = parts;
        let accumulator = ACCUMULATOR.into();
        let id = self.id();
        let range = target.clone();
        fold(id, Fold { range, variable: first, second, accumulator, init, condition, step, result })
    }

    fn quantifier(&mut self, kind: &str, target: &Expr, args: &[Expr]) -> Result<Expr, Refused> {
        let (first, second) = match args {
            [variable, _] => (self.variable(variable, "argument must be a simple name")?, None),
            _ => {
                let (first, second) = self.two_variables(args)?;
                (first, Some(second))
            }
        };
        let predicate = args[args.len() - 1].clone();
        let parts = match kind {
            "all" => {
                let init = self.literal(Value::Bool(true));
                let accumulator = self.accumulator();
                let condition = self.call("@not_strictly_false", vec![accumulator]);
                let accumulator = self.accumulator();
                let step = self.call("_&&_", vec![accumulator, predicate]);
                Parts { init, condition, step, result: self.accumulator() }
            }
            "exists" => {
                let init = self.literal(Value::Bool(false));
                let accumulator = self.accumulator();
                let not = self.call("!_", vec![accumulator]);
                let condition = self.call("@not_strictly_false", vec![not]);
                let accumulator = self.accumulator();
                let step = self.call("_||_", vec![accumulator, predicate]);
                Parts { init, condition, step, result: self.accumulator() }
            }
            _ => {
                let init = self.literal(Value::Int(0));
                let condition = self.literal(Value::Bool(true));
                let (counted, one) = (self.accumulator(), self.literal(Value::Int(1)));
                let more = self.call("_+_", vec![counted, one]);
                let same = self.accumulator();
                let step = self.call("_?_:_", vec![predicate, more, same]);
                let (counted, one) = (self.accumulator(), self.literal(Value::Int(1)));
                Parts { init, condition, step, result: self.call("_==_", vec![counted, one]) }
            }
        };
        Ok(self.comprehension(target, first, second, parts))
    }

    /// One element more at each step, of those that the filter lets through.
    fn growing(&mut self, init: Expr, grown: Expr, filter: Option<Expr>) -> Parts {
        let condition = self.literal(Value::Bool(true));
        let step = match filter {
            None => grown,
            Some(filter) => {
                let same = self.accumulator();
                self.call("_?_:_", vec![filter, grown, same])
            }
        };
        Parts { init, condition, step, result: self.accumulator() }
    }

    fn appended(&mut self, element: Expr) -> Expr {
        let accumulator = self.accumulator();
        let list = self.list(vec![element]);
        self.call("_+_", vec![accumulator, list])
    }

    fn map_or_filter(&mut self, function: &str, target: &Expr, args: &[Expr]) -> Result<Expr, Refused> {
        let variable = self.variable(&args[0], "argument is not an identifier")?;
        let (filter, element) = match (function, args) {
            ("filter", [element, filter, ..]) => (Some(filter), element),
            (_, [_, filter, element]) => (Some(filter), element),
            _ => (None, &args[1]),
        };
        let init = self.list(Vec::new());
        let grown = self.appended(element.clone());
        let parts = self.growing(init, grown, filter.cloned());
        Ok(self.comprehension(target, variable, None, parts))
    }

    fn transform(&mut self, function: &str, target: &Expr, args: &[Expr]) -> Result<Expr, Refused> {
        let (first, second) = self.two_variables(args)?;
        let element = args[args.len() - 1].clone();
        let filter = (args.len() == 4).then(|| args[2].clone());
        let (init, grown) = if function == "transformList" {
            let grown = self.appended(element);
            (self.list(Vec::new()), grown)
        } else {
            let mut inserted = vec![self.accumulator()];
            if function == "transformMap" {
                inserted.push(self.ident(&first));
            }
            inserted.push(element);
            let grown = self.call("cel.@mapInsert", inserted);
            (self.made(ExprKind::Map(Vec::new())), grown)
        };
        let parts = self.growing(init, grown, filter);
        Ok(self.comprehension(target, first, Some(second), parts))
    }

    /// A name for a value: a fold over nothing whose accumulator it is.
    fn bind(&mut self, name: Arc<str>, init: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Value::Bool(false));
        let step = self.ident(&name);
        let id = self.id();
        let variable = UNUSED.into();
        fold(id, Fold { range, variable, second: None, accumulator: name, init, condition, step, result })
    }

    fn optional_map(&mut self, function: &str, target: &Expr, args: &[Expr]) -> Result<Expr, Refused> {
        let message = format!("{function}() variable name must be a simple identifier");
        let name = self.name(&args[0], &message)?;
        let has_value = self.member_call("hasValue", target.clone(), Vec::new());
        let copy = self.copied(target);
        let value = self.member_call("value", copy, Vec::new());
        let mut mapped = self.bind(name, value, args[1].clone());
        if function == "optMap" {
            mapped = self.call("optional.of", vec![mapped]);
        }
        let none = self.call("optional.none", Vec::new());
        Ok(self.call("_?_:_", vec![has_value, mapped, none]))
    }

    fn sort_by(&mut self, target: &Expr, args: &[Expr]) -> Result<Expr, Refused> {
        if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Message(_)) {
            let message =
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
            return Err(self.refuse(target, message));
        }
        let input = self.ident(SORT_INPUT);
        let keys = self.map_or_filter("map", &input, args)?;
        let input = self.ident(SORT_INPUT);
        let sorted = self.member_call("@sortByAssociatedKeys", input, vec![keys]);
        Ok(self.bind(SORT_INPUT.into(), target.clone(), sorted))
    }

    /// The same with ids of its own.
    fn copied(&mut self, expr: &Expr) -> Expr {
        let offset = self.parser.offset_of(expr.id);
        let id = self.parser.id(offset);
        let kind = match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Message(_) | ExprKind::Broken => {
                expr.kind.clone()
            }
            ExprKind::Select { operand, field, test_only } => ExprKind::Select {
                operand: Box::new(self.copied(operand)),
                field: field.clone(),
                test_only: *test_only,
            },
            ExprKind::Call { function, target, args } => ExprKind::Call {
                function: function.clone(),
                target: target.as_ref().map(|target| Box::new(self.copied(target))),
                args: args.iter().map(|arg| self.copied(arg)).collect(),
            },
            ExprKind::List(elements) => ExprKind::List(
                elements
                    .iter()
                    .map(|element| Element { expr: self.copied(&element.expr), optional: element.optional })
                    .collect(),
            ),
            ExprKind::Map(entries) => ExprKind::Map(
                entries
                    .iter()
                    .map(|entry| Entry {
                        key: self.copied(&entry.key),
                        value: self.copied(&entry.value),
                        optional: entry.optional,
                    })
                    .collect(),
            ),
            ExprKind::Fold(fold) => ExprKind::Fold(Box::new(Fold {
                range: self.copied(&fold.range),
                variable: fold.variable.clone(),
                second: fold.second.clone(),
                accumulator: fold.accumulator.clone(),
                init: self.copied(&fold.init),
                condition: self.copied(&fold.condition),
                step: self.copied(&fold.step),
                result: self.copied(&fold.result),
            })),
        };
        Expr { id, kind }
    }
}

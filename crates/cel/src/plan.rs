//! A checked expression becomes a program. It has the parts that the reference's has, because its costs are counted by part:
//! attributes with their qualifiers, calls, folds, and constants where it folds them.

use crate::{
    ast::{Entry, Expr, ExprKind, Fold, Id},
    budget::{Budget, Halt},
    checker::Checked,
    declarations::{Function, Overload, Singleton, functions},
    eval, go_regex,
    macros::ACCUMULATOR,
    value::{Key, MapValue, Value},
};
use regex::Regex;
use std::{collections::BTreeSet, sync::Arc};

#[derive(Debug)]
pub(crate) enum Node {
    Const(Id, Value),
    Or(Id, Box<[Node; 2]>),
    And(Id, Box<[Node; 2]>),
    Equal(Id, Box<[Node; 2]>),
    NotEqual(Id, Box<[Node; 2]>),
    NotStrictlyFalse(Id, Box<Node>),
    Call(Box<CallNode>),
    Attribute(Box<Attribute>),
    /// `has(…)`: the attribute's last qualifier is only looked for.
    Test(Id, Box<Attribute>),
    List(Id, Vec<(Node, bool)>),
    Map(Id, Vec<EntryNode>),
    Fold(Box<FoldNode>),
    /// `x in [literals]`.
    Member(Id, Box<Node>, BTreeSet<Key>),
    OptionalOr(Id, Box<[Node; 2]>),
    OptionalOrValue(Id, Box<[Node; 2]>),
}

pub(crate) type EntryNode = (Node, Node, bool);

#[derive(Debug)]
pub(crate) struct CallNode {
    pub(crate) id: Id,
    pub(crate) function: &'static str,
    /// Empty if several fit.
    pub(crate) overload: &'static str,
    pub(crate) args: Vec<Node>,
    pub(crate) target: CallTarget,
    pub(crate) stops_early: bool,
    /// The first argument is the accumulator of the fold around, which the result will replace.
    pub(crate) grows_accumulator: bool,
}

pub(crate) enum CallTarget {
    Singleton(Singleton),
    Overload(&'static Overload, &'static Function),
    /// The first overload that fits the values.
    Function(&'static Function),
    Regex(Regex),
}

impl std::fmt::Debug for CallTarget {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Singleton(_) => "Singleton",
            Self::Overload(overload, _) => overload.id,
            Self::Function(function) => function.name,
            Self::Regex(regex) => regex.as_str(),
        })
    }
}

#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) source: AttributeSource,
    pub(crate) qualifiers: Vec<Arc<Qualifier>>,
}

#[derive(Debug)]
pub(crate) enum AttributeSource {
    Variable(Id, Arc<str>),
    Value(Id, Node),
    /// Qualifiers are those of both branches.
    Conditional(Id, Box<Conditional>),
}

#[derive(Debug)]
pub(crate) struct Conditional {
    pub(crate) condition: Node,
    pub(crate) yes: Attribute,
    pub(crate) no: Attribute,
}

#[derive(Debug)]
pub(crate) enum Qualifier {
    Constant {
        id: Id,
        key: Value,
        optional: bool,
        test_only: bool,
    },
    /// A key that is worked out; `relative` if it is no attribute by itself.
    Computed {
        id: Id,
        key: Attribute,
        optional: bool,
        relative: bool,
    },
}

impl Qualifier {
    pub(crate) fn id(&self) -> Id {
        match self {
            Self::Constant { id, .. } | Self::Computed { id, .. } => *id,
        }
    }

    pub(crate) fn is_optional(&self) -> bool {
        match self {
            Self::Constant { optional, .. } | Self::Computed { optional, .. } => *optional,
        }
    }
}

impl Attribute {
    pub(crate) fn id(&self) -> Id {
        if let Some(last) = self.qualifiers.last() {
            return last.id();
        }
        match &self.source {
            AttributeSource::Variable(id, _) | AttributeSource::Value(id, _) => *id,
            AttributeSource::Conditional(id, branches) => {
                let (yes, no) = (branches.yes.id(), branches.no.id());
                if yes == no { yes } else { *id }
            }
        }
    }

    fn of_value(id: Id, node: Node) -> Self {
        Self { source: AttributeSource::Value(id, node), qualifiers: Vec::new() }
    }

    fn qualify(&mut self, qualifier: Arc<Qualifier>) {
        match &mut self.source {
            AttributeSource::Conditional(_, branches) => {
                branches.yes.qualify(qualifier.clone());
                branches.no.qualify(qualifier);
            }
            _ => self.qualifiers.push(qualifier),
        }
    }
}

#[derive(Debug)]
pub(crate) struct FoldNode {
    pub(crate) id: Id,
    pub(crate) range: Node,
    pub(crate) variable: Arc<str>,
    pub(crate) second: Option<Arc<str>>,
    pub(crate) accumulator: Arc<str>,
    pub(crate) init: Node,
    pub(crate) condition: Node,
    pub(crate) step: Node,
    pub(crate) result: Node,
}

impl Node {
    pub(crate) fn id(&self) -> Id {
        match self {
            Self::Const(id, _)
            | Self::Or(id, _)
            | Self::And(id, _)
            | Self::Equal(id, _)
            | Self::NotEqual(id, _)
            | Self::NotStrictlyFalse(id, _)
            | Self::Test(id, _)
            | Self::List(id, _)
            | Self::Map(id, _)
            | Self::Member(id, ..)
            | Self::OptionalOr(id, _)
            | Self::OptionalOrValue(id, _) => *id,
            Self::Call(call) => call.id,
            Self::Attribute(attribute) => attribute.id(),
            Self::Fold(fold) => fold.id,
        }
    }

    fn constant(&self) -> Option<&Value> {
        match self {
            Self::Const(_, value) => Some(value),
            _ => None,
        }
    }

    /// As an attribute, which tests and attributes are and other nodes become.
    fn into_attribute(self) -> Attribute {
        match self {
            Self::Attribute(attribute) | Self::Test(_, attribute) => *attribute,
            other => Attribute::of_value(other.id(), other),
        }
    }
}

/// Why an expression that compiles cannot be run.
type Failure = String;

pub(crate) fn plan(checked: &Checked) -> Result<Node, Failure> {
    Planner { checked }.plan(&checked.root)
}

struct Planner<'c> {
    checked: &'c Checked,
}

impl Planner<'_> {
    fn plan(&self, expr: &Expr) -> Result<Node, Failure> {
        let id = expr.id;
        Ok(match &expr.kind {
            ExprKind::Literal(value) => Node::Const(id, value.clone()),
            ExprKind::Ident(name) => match self.checked.named_types[id as usize] {
                Some(named) => Node::Const(id, Value::Type(named)),
                None => Node::Attribute(Box::new(Attribute {
                    source: AttributeSource::Variable(id, name.clone()),
                    qualifiers: Vec::new(),
                })),
            },
            ExprKind::Select { operand, field, test_only } => self.select(id, operand, field, *test_only)?,
            ExprKind::Call { function, target, args } => self.call(id, function, target.as_deref(), args)?,
            ExprKind::List(elements) => {
                let mut nodes = Vec::new();
                for element in elements {
                    nodes.push((self.plan(&element.expr)?, element.optional));
                }
                self.folded_list(id, nodes)
            }
            ExprKind::Map(entries) => self.map(id, entries)?,
            ExprKind::Fold(fold) => self.fold(id, fold)?,
            ExprKind::Message(_) | ExprKind::Broken => return Err("unsupported expression".into()),
        })
    }

    fn select(&self, id: Id, operand: &Expr, field: &str, test_only: bool) -> Result<Node, Failure> {
        let mut attribute = self.plan(operand)?.into_attribute();
        let key = Value::text(field);
        attribute.qualify(Arc::new(Qualifier::Constant { id, key, optional: false, test_only }));
        let attribute = Box::new(attribute);
        Ok(if test_only { Node::Test(id, attribute) } else { Node::Attribute(attribute) })
    }

    fn pair(&self, args: &[Expr]) -> Result<Box<[Node; 2]>, Failure> {
        let [left, right] = args else { return Err("no such overload".into()) };
        Ok(Box::new([self.plan(left)?, self.plan(right)?]))
    }

    fn call(&self, id: Id, function: &str, target: Option<&Expr>, args: &[Expr]) -> Result<Node, Failure> {
        Ok(match function {
            "_&&_" => Node::And(id, self.pair(args)?),
            "_||_" => Node::Or(id, self.pair(args)?),
            "_==_" => Node::Equal(id, self.pair(args)?),
            "_!=_" => Node::NotEqual(id, self.pair(args)?),
            "_?_:_" => self.conditional(id, args)?,
            "_[_]" => self.index(id, args, false)?,
            "_[?_]" | "_?._" => self.index(id, args, true)?,
            "@not_strictly_false" => Node::NotStrictlyFalse(id, Box::new(self.plan(&args[0])?)),
            _ => return self.function_call(id, function, target, args),
        })
    }

    fn conditional(&self, id: Id, args: &[Expr]) -> Result<Node, Failure> {
        let [condition, yes, no] = args else { return Err("no such overload: _?_:_".into()) };
        let branches = Conditional {
            condition: self.plan(condition)?,
            yes: self.plan(yes)?.into_attribute(),
            no: self.plan(no)?.into_attribute(),
        };
        let source = AttributeSource::Conditional(id, Box::new(branches));
        Ok(Node::Attribute(Box::new(Attribute { source, qualifiers: Vec::new() })))
    }

    fn index(&self, id: Id, args: &[Expr], optional: bool) -> Result<Node, Failure> {
        let [operand, index] = args else { return Err("no such overload: _[_]".into()) };
        let mut attribute = self.plan(operand)?.into_attribute();
        let qualifier = match self.plan(index)? {
            Node::Const(_, key) => {
                use Value::*;
                if !matches!(key, Text(_) | Int(_) | Uint(_) | Bool(_) | Double(_)) {
                    return Err(format!("invalid qualifier type: {}", key.type_name()));
                }
                Qualifier::Constant { id, key, optional, test_only: false }
            }
            Node::Attribute(key) | Node::Test(_, key) => {
                Qualifier::Computed { id, key: *key, optional, relative: false }
            }
            other => {
                let key = Attribute::of_value(id, other);
                Qualifier::Computed { id, key, optional, relative: true }
            }
        };
        attribute.qualify(Arc::new(qualifier));
        Ok(Node::Attribute(Box::new(attribute)))
    }

    fn function_call(
        &self,
        id: Id,
        function: &str,
        target: Option<&Expr>,
        args: &[Expr],
    ) -> Result<Node, Failure> {
        let mut nodes = Vec::with_capacity(args.len() + 1);
        for arg in target.into_iter().chain(args) {
            nodes.push(self.plan(arg)?);
        }
        let declared = functions().get(function).ok_or_else(|| format!("no such overload: {function}"))?;
        if let "or" | "orValue" = declared.name {
            let pair: Result<Box<[Node; 2]>, _> = nodes.try_into();
            let pair = pair.map_err(|_| format!("no such overload: {function}"))?;
            return Ok(if declared.name == "or" {
                Node::OptionalOr(id, pair)
            } else {
                Node::OptionalOrValue(id, pair)
            });
        }
        let overload = match self.checked.overloads_of(id) {
            [only] => *only,
            _ => "",
        };
        let (target, stops_early) = dispatch(declared, overload, nodes.len())?;
        let grows_accumulator = matches!(declared.name, "_+_" | "cel.@mapInsert")
            && args.first().and_then(Expr::ident).is_some_and(|name| &**name == ACCUMULATOR);
        let function = declared.name;
        let call = CallNode { id, function, overload, args: nodes, target, stops_early, grows_accumulator };
        optimized(call)
    }

    fn folded_list(&self, id: Id, nodes: Vec<(Node, bool)>) -> Node {
        let constants: Option<Vec<Value>> = nodes.iter().map(|(node, _)| node.constant().cloned()).collect();
        match constants {
            Some(values) if nodes.iter().all(|(_, optional)| !optional) => {
                Node::Const(id, Value::list(values))
            }
            _ => Node::List(id, nodes),
        }
    }

    fn map(&self, id: Id, entries: &[Entry]) -> Result<Node, Failure> {
        let mut nodes = Vec::new();
        for Entry { key, value, optional } in entries {
            nodes.push((self.plan(key)?, self.plan(value)?, *optional));
        }
        let mut constant = MapValue::default();
        for (key, value, optional) in &nodes {
            let (Some(key), Some(value), false) = (key.constant(), value.constant(), optional) else {
                return Ok(Node::Map(id, nodes));
            };
            if !constant.insert(key.clone(), value.clone()) {
                return Err(format!("unsupported key type: {}", key.type_name()));
            }
        }
        Ok(Node::Const(id, Value::Map(Arc::new(constant))))
    }

    fn fold(&self, id: Id, fold: &Fold) -> Result<Node, Failure> {
        Ok(Node::Fold(Box::new(FoldNode {
            id,
            init: self.plan(&fold.init)?,
            range: self.plan(&fold.range)?,
            condition: self.plan(&fold.condition)?,
            step: self.plan(&fold.step)?,
            result: self.plan(&fold.result)?,
            variable: fold.variable.clone(),
            second: fold.second.clone(),
            accumulator: fold.accumulator.clone(),
        })))
    }
}

/// What a call calls, and whether arguments behind one that fails are evaluated.
fn dispatch(function: &'static Function, overload: &str, args: usize) -> Result<(CallTarget, bool), Failure> {
    if let Some(singleton) = function.singleton {
        return Ok((CallTarget::Singleton(singleton), args > 2));
    }
    let implemented = || function.overloads.iter().filter(|overload| overload.implementation.is_some());
    let only = implemented().find(|candidate| candidate.id == overload).or_else(|| {
        let mut all = implemented();
        all.next().filter(|_| all.next().is_none())
    });
    match only {
        Some(only) => Ok((CallTarget::Overload(only, function), only.stops_early)),
        None if implemented().next().is_some() => Ok((CallTarget::Function(function), true)),
        None => Err(format!("no such overload: {}", function.name)),
    }
}

const CONVERSIONS: &[&str] =
    &["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Where arguments are literals, the call or a part of it is worked out now.
fn optimized(mut call: CallNode) -> Result<Node, Failure> {
    if call.overload == "in_list"
        && let Some(Value::List(list)) = call.args[1].constant()
    {
        if list.is_empty() {
            return Ok(Node::Const(call.id, Value::Bool(false)));
        }
        if let Some(set) = primitive_set(list) {
            let arg = call.args.swap_remove(0);
            return Ok(Node::Member(call.id, Box::new(arg), set));
        }
    }
    if CONVERSIONS.contains(&call.function)
        && call.args.len() == 1
        && let Some(value) = call.args[0].constant()
    {
        let converted = eval::apply(&call, std::slice::from_ref(value), &mut Budget::new());
        return match converted {
            Ok(Value::Error(message)) => Err(message.to_string()),
            Ok(value) => Ok(Node::Const(call.id, value)),
            Err(Halt::Internal(message)) => Err(message),
            Err(Halt::TooExpensive) => Err("expression too large".into()),
        };
    }
    if matches!(call.function, "matches" | "find" | "findAll")
        && call.args.len() > 1
        && let Some(Value::Text(pattern)) = call.args[1].constant()
    {
        call.target = CallTarget::Regex(go_regex::compile(pattern)?);
        call.stops_early = true;
    }
    Ok(Node::Call(Box::new(call)))
}

fn primitive_set(list: &[Value]) -> Option<BTreeSet<Key>> {
    use Value::*;
    let primitive = |value: &Value| matches!(value, Bool(_) | Int(_) | Uint(_) | Double(_) | Text(_));
    list.iter().map(|value| if primitive(value) { value.key() } else { None }).collect()
}

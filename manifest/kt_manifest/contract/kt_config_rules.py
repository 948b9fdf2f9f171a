"""The rules of `[kt.config."<key>"]`: what refines a rule of the contract, and what stands alone.

A table here says in which form a value arrives (`format`, `type`, `merge`, `template`). The place is that of
`[config.<key>]`, or its own where the contract has no such target.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kt_manifest import words
from kt_manifest.contract import config_rules, kt_schema, schema
from kt_manifest.contract.config_rules import TARGETS
from kt_manifest.contract.findings import Draft, Finding, section
from kt_manifest.contract.places import Owner, Places
from kt_manifest.contract.snapshot import Rule, Shape
from kt_manifest.launch import template
from kt_manifest.launch.native import env_file
from kt_manifest.launch.template import TemplateInvalid

_OF_A_FILE = ("toml", "json", "yaml", "env")
_OF_A_VARIABLE = ("json", "text")


def judge(draft: Draft) -> Iterator[Finding]:
    """Give the faults of all tables: each by itself first, in the order of the file, then the clashes."""
    if list(draft.wrong_types("kt", "config")) or list(draft.wrong_types("config")):
        return  # told before, and nothing here could be read
    config, additions = draft.table("config"), draft.table("kt", "config")
    alone = [finding for key in additions for finding in _Table(key, additions[key], config).judge()]
    yield from alone
    if alone or list(config_rules.judge(draft)):
        return
    yield from _unused_types(config, additions)
    yield from _clashes(config, additions)


def mapping(
    config: dict[str, schema.RuleSection], additions: dict[str, kt_schema.KtRuleSection]
) -> tuple[tuple[Rule, ...], dict[str, str]]:
    """Return the rules of a manifest without faults, and the types of its keys."""
    plain = {key: rule.model_dump(exclude_none=True) for key, rule in config.items()}
    added = {key: rule.model_dump(exclude_none=True) for key, rule in additions.items()}
    types = {key: rule["type"] for key, rule in added.items() if "type" in rule}
    return tuple(rule for _, rule in _rules(plain, added)), types


@dataclass(frozen=True, slots=True)
class _Table:
    """One `[kt.config."<key>"]`, and the rule that it refines, where there is one."""

    key: str
    says: dict[str, Any]
    config: dict[str, Any]

    def judge(self) -> Iterator[Finding]:
        """Give the faults of this table by itself."""
        if not self.key:
            yield self._finding("an empty key", "a unified key such as model", "name the key")
        if not self.says:
            yield self._finding(
                "an empty table", "format, type, merge, template or a target", "say one, or remove it"
            )
        own = [target for target in TARGETS if target in self.says]
        refined = self._refined()
        if len(own) > 1:
            yield self._finding(" and ".join(own), "at most one of env, flag and file", "keep one")
        elif own and refined is not None:
            base = section(("config", self.key))
            yield self._finding(
                f"{own[0]} beside {base}", "one target for a key", f"remove {own[0]} or {base}"
            )
        elif own:
            yield from self._target(own[0], self.says[own[0]], stands_alone=True)
        elif refined is not None:
            yield from self._target(*refined, stands_alone=False)
        elif needless := [name for name in ("format", "merge", "template") if name in self.says]:
            yield self._finding(
                f"{needless[0]} without a target",
                "file or env here, or a rule [config.<key>]",
                "add it",
                lacks=("kt", "config", self.key),
            )

    def _refined(self) -> tuple[str, Any] | None:
        rule = self.config.get(self.key, {})
        chosen = [target for target in TARGETS if target in rule]
        return (chosen[0], rule[chosen[0]]) if len(chosen) == 1 else None

    def _target(self, target: str, value: Any, *, stands_alone: bool) -> Iterator[Finding]:
        if stands_alone:
            yield from self._place(target, value)
        has_template = "template" in self.says
        yield from self._form(target, has_template=has_template)
        if target == "file" and has_template and value.get("key") is not None:
            yield self._finding(
                "template beside file.key", "a template that is the whole file", "remove the key"
            )
        if has_template and target != "flag":
            yield from self._template(target)
        elif (
            target == "file"
            and self._format(target) == "env"
            and not env_file.NAME.fullmatch(value.get("key") or "")
        ):
            got = f"file.key {words.shown(value.get('key'))}"
            yield self._finding(got, "the name of a variable, for format env", "correct the key")

    def _place(self, target: str, value: Any) -> Iterator[Finding]:
        if target != "file":
            yield from config_rules.judge_target(self._where(), target, value)
            if target == "flag" or "template" not in self.says:
                got = f"{target} without anything that the contract does not have"
                rule = section(("config", self.key))
                yield self._finding(got, f"{rule}, which every engine reads", f"move {target} to {rule}")
            return
        whole = "template" in self.says
        yield from config_rules.judge_target(self._where(), "file", {**value, "key": "x"} if whole else value)
        if not whole and self._format(target) == "toml" and self.says.get("merge") is not True:
            rule = section(("config", self.key))
            got = "a TOML file that is written whole"
            yield self._finding(got, f"{rule}, which every engine reads", f"move file to {rule}")

    def _form(self, target: str, *, has_template: bool) -> Iterator[Finding]:
        if target == "flag":
            wrong = [name for name in ("format", "merge", "template") if name in self.says]
            if wrong:
                yield self._finding(
                    f"{wrong[0]} beside a flag", "it beside file or env", f"remove {wrong[0]}"
                )
            return
        if target == "env":
            if not has_template and "format" in self.says:
                yield self._finding(
                    "format beside a variable", "it beside a file or a template", "remove format"
                )
            if "merge" in self.says:
                yield self._finding("merge beside a variable", "it beside a file", "remove merge")
        known = _OF_A_VARIABLE if target == "env" else (*_OF_A_FILE, *(("text",) if has_template else ()))
        if (has_template or target == "file") and self._format(target) not in known:
            yield self._finding(
                f"format = {words.shown(self._format(target))}",
                f"one of {', '.join(known)}",
                "correct format",
            )
        if self.says.get("merge") is True and self._format(target) == template.TEXT:
            yield self._finding("merge of a text", "a format that has keys", "remove merge")

    def _template(self, target: str) -> Iterator[Finding]:
        format_ = self._format(target)
        if format_ not in (_OF_A_VARIABLE if target == "env" else (*_OF_A_FILE, template.TEXT)):
            return
        try:
            template.read(format_, self.says["template"])
        except TemplateInvalid as error:
            wanted = (
                f"{format_} in which ${{key}} names settings"
                if format_ != template.TEXT
                else "${key} for settings"
            )
            yield self._finding(f"template: {error}", wanted, "correct the template")

    def _format(self, target: str) -> str:
        return str(self.says.get("format", "json" if target == "env" else "toml"))

    def _where(self) -> str:
        return section(("kt", "config", self.key))

    def _finding(self, got: str, wanted: str, do: str, *, lacks: schema.Loc | None = None) -> Finding:
        return Finding(self._where(), "invalid_field", got, wanted, do, lacks=lacks)


def _rules(config: dict[str, Any], additions: dict[str, Any]) -> Iterator[tuple[str, Rule]]:
    """Give every rule with the section that says it: those of the contract first, then those that stand alone."""
    for key, rule in config.items():
        yield (
            section(("config", key)),
            Rule(key, config_rules.target_of(rule), _shape(rule, additions.get(key, {}))),
        )
    for key, rule in additions.items():
        if any(target in rule for target in TARGETS):
            yield section(("kt", "config", key)), Rule(key, config_rules.target_of(rule), _shape(rule, rule))


def _shape(target: dict[str, Any], says: dict[str, Any]) -> Shape:
    text = says.get("template")
    default = "json" if text is not None and "env" in target else "toml"
    return Shape(format=says.get("format", default), merge=says.get("merge") is True, template=text)


def _unused_types(config: dict[str, Any], additions: dict[str, Any]) -> Iterator[Finding]:
    rules = [rule for _, rule in _rules(config, additions)]
    used = {rule.key for rule in rules} | {key for rule in rules for key in _references(rule)}
    for key, says in additions.items():
        if "type" in says and key not in used:
            where, wanted = section(("kt", "config", key)), "a target, or a template that refers to the key"
            yield Finding(
                where, "invalid_field", "type for a key that goes nowhere", wanted, "add one, or remove it"
            )


def _references(rule: Rule) -> list[str]:
    if rule.shape.template is None:
        return []
    return template.keys(template.read(rule.shape.format, rule.shape.template))


def _clashes(config: dict[str, Any], additions: dict[str, Any]) -> Iterator[Finding]:
    places = Places()
    for where, rule in _rules(config, additions):
        clash = places.take(Owner(where, rule.key), rule)
        if clash is None or not {rule.key, clash.owner.key} & additions.keys():
            continue  # the contract's own rules are judged among themselves elsewhere
        mine = rule.key in additions
        fault = clash.fault if mine else clash.turned or clash.fault
        yield Finding(
            section(("kt", "config", rule.key if mine else clash.owner.key)),
            "invalid_field",
            f"{fault} {clash.owner.section if mine else where}",
            "files that are written in one way, and a place of its own for each value",
            "change one of the two",
        )

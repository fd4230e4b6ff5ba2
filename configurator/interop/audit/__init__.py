"""Audit a model: exact cache and parameters, valid rank counts, and what fits, from its config."""

from __future__ import annotations

from configurator.core.audit_report import Audit, GroupRow
from configurator.interop.audit.answer import audit_config, audit_shape
from configurator.interop.audit.question import AuditQuestion, ask
from configurator.interop.audit.source import audit

__all__ = ["Audit", "AuditQuestion", "GroupRow", "ask", "audit", "audit_config", "audit_shape"]

# SPDX-License-Identifier: Apache-2.0
"""A backend of Tenon, which finds its file without importing this package."""

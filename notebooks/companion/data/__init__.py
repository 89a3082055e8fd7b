"""The papers' own data: readers, downloads, and what only these need, such as laser scans."""

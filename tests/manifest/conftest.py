"""The contract's own complete example, taken apart into the blocks that tests break one at a time."""

import pytest
from hypothesis import settings

# No database of past failures in the working tree: a failure prints the example that reproduces it.
settings.register_profile("manifest", database=None)
settings.load_profile("manifest")

BLOCKS = {
    "contract_version": 'contract_version = "1.0.0"\n',
    "adapter": '[adapter]\nkind = "my-agent"\nname = "My Agent"\n',
    "lifecycle": (
        '[lifecycle.start]\nexec = "my-agent"\nargs = ["--serve"]\nenv = { LOG_LEVEL = "info" }\n'
        '[lifecycle.stop]\nexec = "my-agent"\nargs = ["--shutdown"]\n'
    ),
    "capabilities": (
        '[capabilities.pause]\nlinux = "guaranteed"\nmacos = "guaranteed"\nwindows = "best-effort"\n'
        '[capabilities.interaction]\nlinux = "guaranteed"\nmacos = "guaranteed"\nwindows = "guaranteed"\n'
    ),
    "metering": '[metering]\nsource = "self-reported"\n',
    "interaction": '[interaction]\nchannel = "stdio"\n',
    "config": '[config.model]\nenv = "MODEL"\n',
    "more": "",
}


@pytest.fixture(scope="session")
def blocks() -> dict[str, str]:
    return dict(BLOCKS)


@pytest.fixture(scope="session")
def valid() -> str:
    return "".join(BLOCKS.values())

"""The packages, and as one more the weights of `odl.load` and `odl.restore`, which a wheel carries from data/models."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["odl*", "companion*", "bench*"]), "odl.models"],
    package_dir={"odl.models": "data/models"},
    package_data={
        "odl": ["py.typed", "*.pyi"],
        "companion.claims": ["*.csv"],
        "odl.models": ["manifest.json", "*-on_demand-*.safetensors", "photo_*.safetensors"],
    },
)

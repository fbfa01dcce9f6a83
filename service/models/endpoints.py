from dataclasses import asdict

from fastapi import APIRouter

from service.errors import InvalidRequest, Unavailable, UnknownModel, responses
from service.models.schemas import (
    Metadata,
    ModelList,
    ModelName,
    ModelSpec,
    ModelStatus,
    ModelSummary,
    VersionNumber,
)
from service.models.version import Version
from service.state import State

router = APIRouter(prefix="/v1/models", tags=["models"])


@router.get("", summary="List the models", responses=responses())
def list_models(state: State) -> ModelList:
    """Lists every model under the registry's root with its versions."""
    state.registry.scan()
    catalog = state.registry.catalog()
    return ModelList(
        models=[ModelSummary.of(name, versions) for name, versions in catalog.items()]
    )


@router.get("/{name}", summary="Describe a model", responses=responses(UnknownModel))
def get_model(state: State, name: ModelName) -> ModelStatus:
    """Says in which state the versions are, and what the newest good one reads."""
    state.registry.scan()
    return ModelStatus.of(name, state.registry.versions(name))


@router.get(
    "/{name}/versions/{version}",
    summary="Describe a version",
    responses=responses(InvalidRequest, UnknownModel),
)
def get_version(state: State, name: ModelName, version: VersionNumber) -> ModelStatus:
    """Says in which state the version is, and what it reads."""
    return ModelStatus.of(name, [state.registry.version(name, version)])


@router.get(
    "/{name}/metadata",
    summary="Signatures and manifest of a model",
    responses=responses(UnknownModel, Unavailable),
)
def get_metadata(state: State, name: ModelName) -> Metadata:
    """Describes the version that answers when none is asked for."""
    return _metadata(state.registry.version(name))


@router.get(
    "/{name}/versions/{version}/metadata",
    summary="Signatures and manifest of a version",
    responses=responses(InvalidRequest, UnknownModel, Unavailable),
)
def get_version_metadata(
    state: State, name: ModelName, version: VersionNumber
) -> Metadata:
    """Describes the version asked for."""
    return _metadata(state.registry.version(name, version))


def _metadata(version: Version) -> Metadata:
    return Metadata(
        model_spec=ModelSpec(
            name=version.name, signature_name="", version=str(version.number)
        ),
        metadata={
            "signature_def": {"signature_def": version.signatures()},
            "manifest": asdict(version.load().manifest),
        },
    )

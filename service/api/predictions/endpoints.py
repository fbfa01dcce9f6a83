"""`:predict` and `:predict-file` of models, versions and labels."""

from fastapi import Response

from service.api.datasets.schemas import UPLOAD_BODY
from service.api.http.routes import scoped_router
from service.api.keys.keyring import may_predict
from service.api.predictions.answering import answer_table
from service.api.predictions.files import predict_file
from service.api.predictions.routes import add_routes
from service.api.predictions.schemas import (
    FILE_NAME,
    FILE_RESPONSE,
    REFUSED_OF_FILES,
    TABLE_BODY,
    TABLE_RESPONSE,
    PredictResponse,
    query_parameters,
)

router = scoped_router("/v1/models", "predictions", may_predict)

add_routes(
    router,
    ":predict",
    "Predict with",
    "Returns the predictive distribution of each row, by",
    answer_table,
    response_model=PredictResponse,
    response_description="The predictive distributions.",
    openapi_extra={
        "requestBody": TABLE_BODY,
        "parameters": query_parameters("Of a table in Arrow or CSV"),
    },
    responses={200: TABLE_RESPONSE},
)
add_routes(
    router,
    ":predict-file",
    "Predict a file with",
    "Returns the rows of a file with their predictions, in the format of the file, by",
    predict_file,
    body=None,  # `received_file` counts the bytes.
    response_class=Response,
    response_description="The file.",
    openapi_extra={
        "requestBody": UPLOAD_BODY,
        "parameters": [
            *query_parameters("In the URL", REFUSED_OF_FILES),
            FILE_NAME,
        ],
    },
    responses={200: FILE_RESPONSE},
)
